"""A part of a split: verified rows, memory-mapped, in batches; as tensors, tokens and exports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import FarshiftError, MissingExtra
from .batching.batched import BatchedPart

if TYPE_CHECKING:
    from .batching.input_format import AudioSpec, ImageSpec
    from .batching.tokens import Tokens
    from .batching.torch_stream import TorchStream


@dataclass(frozen=True, repr=False)
class Part(BatchedPart):
    """Rows of one part of a split, in stored order (ascending row id, which is unrelated to the content).

    Columns: the source's fields (with the observed label: if a split corrupts labels, the corrupted one), `row_id`, and
    if the split has them `weight`, `group`, `severity`, `corrupted`. A row of weight 3 represents three published
    copies and is one row here.

    >>> import farshift as fs
    >>> part = fs.load("modadd97/xi35")
    >>> len(part), part.columns, part.weighted_rows
    (4704, ('a', 'b', 'sum', 'row_id', 'corrupted'), 4704)
    >>> [f"{row_id:016x}" for row_id in part.row_ids[:2]]
    ['000bc148cc833e76', '000d44181e180469']
    """

    def torch(
        self,
        batch_size: int,
        seed: int | None = 0,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        *,
        rank: int | None = None,
        world: int | None = None,
        images: ImageSpec = "bytes",
        audio: AudioSpec = "bytes",
    ) -> TorchStream:
        """Return the part as an `IterableDataset` of batches, for `DataLoader(stream, batch_size=None)`.

        `batch_size` is the global batch size, over all ranks. See `TorchStream` for ranks, workers and resuming.

        images: `"bytes"` (encoded files), `"PIL"`, a side in pixels (uint8), or a named transform (`"imagenet"`,
        `"resize 256, crop 224, normalise clip"`: float32, channels first). audio: `"bytes"`, or a sampling rate
        (float32 samples). Raises `FarshiftError` for another value.

        >>> import farshift as fs
        >>> stream = fs.load("modadd97/xi35").torch(512)
        >>> len(stream), next(iter(stream))["a"].shape
        (10, torch.Size([512]))
        """
        if find_spec("torch") is None:
            raise MissingExtra("a torch stream", "train")
        from .batching.torch_stream import TorchStream

        return TorchStream(self, batch_size, seed, epoch, drop_last, columns, rank, world, images, audio)

    def tokens(self, tokenizer: Any, column: str | None = None, most: int | None = None) -> Tokens:
        """Tokenise a text column to ragged token ids: once into the cache, then memory-mapped.

        tokenizer: a folder with a `tokenizer.json`, a `tokenizers.Tokenizer`, or a fast tokenizer of transformers.
        column: by default the only text input. most: the maximum number of ids of a text. Raises `MissingExtra` without
        the library `tokenizers`, `FarshiftError` if the column is not text.

        >>> import farshift as fs
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> words = Tokenizer(models.WordLevel({"walk": 0, "twice": 1, "?": 2}, unk_token="?"))
        >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> part = fs.load("scan/length")
        >>> tokens = part.tokens(words)
        >>> part[0]["command"], tokens[0].tolist()
        ('look twice and walk opposite right', [2, 1, 2, 0, 2, 2])
        """
        from .batching.tokens import load_tokenizer, tokenise_texts

        texts = [field.name for field in self.schema.fields if field.item == "string" and not field.shape]
        if column is None:
            own = [name for name in texts if self.schema[name].role == "input"]
            if len(own) != 1:
                raise FarshiftError(f"{self.split} has {len(own)} text inputs: give the column to tokenise")
            column = own[0]
        if self.resolve_columns([column]) and column not in texts:
            raise FarshiftError(f"column {column!r} of {self.split} is not text: only text can be tokenised")
        return tokenise_texts(self._arrow(column), load_tokenizer(tokenizer, most))

    def to_hf(self) -> Any:
        """Return the rows as a `datasets.Dataset`.

        >>> import farshift as fs
        >>> fs.load("modadd97/xi35").to_hf()[0]
        {'a': 47, 'b': 24, 'sum': 71, 'row_id': 3308743156776566, 'corrupted': False}
        """
        from .export.hugging_face import to_hf

        return to_hf(self)

    def to_webdataset(self, folder: Path | str, shard_bytes: int | None = None) -> Path:
        """Write the rows to `folder` as WebDataset shards of at most `shard_bytes` (256 MiB), and return the folder.

        >>> import tempfile
        >>> import farshift as fs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = fs.load("modadd97/xi35").to_webdataset(folder + "/shards")
        ...     sorted(file.name for file in written.iterdir())
        ['manifest.json', 'modadd97-xi35-train-000000.tar', 'modadd97-xi35-train.index.parquet']
        """
        from .export import webdataset

        return webdataset.write(self, folder, webdataset.SHARD_BYTES if shard_bytes is None else shard_bytes)

    def to_parquet(self, file: Path | str) -> Path:
        """Write the rows to one Parquet file, and return its path.

        >>> import tempfile
        >>> import farshift as fs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fs.load("modadd97/xi35").to_parquet(folder + "/train.parquet").name
        'train.parquet'
        """
        from .export.content import write_parquet

        return write_parquet(self, file)
