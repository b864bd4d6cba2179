"""A part of a split: verified rows, memory-mapped, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ..core.errors import FarshiftError, MissingExtra, UnknownName
from ..core.isolation.label_access import refuse_labels
from ..splits.schema import Schema
from .batching.categories import encode_categories
from .batching.columns import (
    Column,
    FixedColumn,
    Text,
    TextColumn,
    check_text,
    join_chunks,
    materialise_column,
    prepare_column,
    read_batches,
    to_microseconds,
    to_object_array,
)
from .batching.order import (
    STORED_ROWS,
    AsStored,
    GlobalBatches,
    Order,
    StoredPermutation,
    make_epoch_order,
    make_index_order,
)

if TYPE_CHECKING:
    import pyarrow as pa
    from torch import device as Device

    from .batching.input_format import AudioSpec, ImageSpec
    from .batching.on_device import DevicePart
    from .batching.tokens import Tokens
    from .batching.torch_stream import TorchStream

_ADDED = ("row_id", "weight", "group", "severity", "corrupted")


@dataclass(frozen=True)
class Part:
    """Rows of one part of a split, in stored order (ascending row id; an order that tells nothing of the rows).

    Columns: the source's fields (the label as given: where a split corrupts labels, the corrupted one), `row_id`,
    and where the split has them `weight`, `group`, `severity`, `corrupted`. A row of weight 3 stands for three
    published copies and is one row here.

    >>> import farshift as fs
    >>> part = fs.load("modadd97/xi35")
    >>> len(part), part.columns, part.weighted_rows
    (4704, ('a', 'b', 'sum', 'row_id', 'corrupted'), 4704)
    >>> [f"{row_id:016x}" for row_id in part.row_ids[:2]]
    ['000bc148cc833e76', '000d44181e180469']
    """

    split: str
    identity: str
    name: str
    schema: Schema
    label: str
    source: pa.Table
    source_indices: NDArray[np.int64]
    row_metadata: dict[str, NDArray[Any]]
    override: np.ma.MaskedArray[Any, Any] | None = None
    label_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.source_indices)

    def __repr__(self) -> str:
        return f"Part({self.split}, {self.name}: {len(self):,} rows; {', '.join(self.columns)})"

    @cached_property
    def columns(self) -> tuple[str, ...]:
        return (*(field.name for field in self.schema.fields), *(name for name in _ADDED if self._has(name)))

    def _has(self, name: str) -> bool:
        return name == "row_id" or name in self.row_metadata or (name == "corrupted" and self.override is not None)

    @property
    def row_ids(self) -> NDArray[np.uint64]:
        """The rows' ids, ascending, shape (rows,)."""
        ids: NDArray[np.uint64] = self.source["row_id"].to_numpy()[self.source_indices]
        return ids

    @property
    def weighted_rows(self) -> int:
        """The number of rows with published copies counted."""
        return int(self.row_metadata["weight"].sum()) if "weight" in self.row_metadata else len(self)

    def select(self, positions: NDArray[Any]) -> Part:
        """The part's rows at `positions` (indices or a boolean mask), in the order given.

        >>> import farshift as fs
        >>> part = fs.load("modadd97/xi35")
        >>> part.select(part.numpy(["a"])["a"] < 10)
        Part(modadd97/xi35@1, train: 500 rows; a, b, sum, row_id, corrupted)
        """
        return replace(
            self,
            source_indices=self.source_indices[positions],
            row_metadata={name: values[positions] for name, values in self.row_metadata.items()},
            override=None if self.override is None else self.override[positions],
        )

    @overload
    def __getitem__(self, position: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, position: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, position: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        """One row as Python values, or the rows of a slice; negative positions count from the end."""
        if isinstance(position, slice):
            rows: list[dict[str, Any]] = self.select(np.arange(len(self))[position]).arrow().to_pylist()
            return rows
        if not -len(self) <= position < len(self):
            raise IndexError(f"row {position} of a part of {len(self)} rows")
        row: dict[str, Any] = self.select(np.array([position % len(self)])).arrow().to_pylist()[0]
        return row

    def __getitems__(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        """The rows of these positions with NumPy values (numbers as arrays without axes), as torch's `DataLoader` asks
        of a data set that it draws positions for: so that it makes tensors of them, also of row ids and of times
        (microseconds since 1970)."""
        columns = self.select(np.asarray(positions, np.int64) % len(self)).numpy()
        return [
            {
                name: column[row] if column.dtype == object else to_microseconds(column)[row, ...]
                for name, column in columns.items()
            }
            for row in range(len(positions))
        ]

    def arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows as a pyarrow Table; tensors are fixed-size lists in C order.

        >>> import farshift as fs
        >>> fs.load("modadd97/xi35").arrow(["a", "b"]).slice(0, 2).to_pylist()
        [{'a': 47, 'b': 24}, {'a': 36, 'b': 26}]
        """
        import pyarrow as pa

        return pa.table({name: self._arrow(name) for name in self.resolve_columns(columns)})

    def numpy(self, columns: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
        """The rows as arrays, first axis the row; text is an object array of `str`, tensors have their shape.

        >>> import farshift as fs
        >>> fs.load("modadd97/xi35").numpy(["a"])["a"][:5].tolist()
        [47, 36, 80, 14, 38]
        """
        return {name: _read_all(self.column(name), len(self)) for name in self.resolve_columns(columns)}

    def batches(
        self,
        batch_size: int,
        seed: int | None = None,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        *,
        rank: int = 0,
        world: int = 1,
        worker: int = 0,
        workers: int = 1,
        start: int = 0,
        text: Text = "codes",
        reuse: bool = False,
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """One epoch in dictionaries of arrays: each row once, over all ranks and workers.

        Without a seed, in stored order; with one, in an order that is a pure function of (manifest identity, part,
        seed, epoch). The order is cut into global batches of `batch_size` rows, the same for every `world` that divides
        `batch_size`: `rank` has a contiguous share of each (of a shorter last batch, as even a share as can be;
        `drop_last` leaves that batch out). `workers` take the global batches in turn. `start` is the first global
        batch to give: an epoch that was left before batch t goes on with start=t, at any `world` and `workers`.

        Texts are objects of `str`; those of role meta (a domain, a date) are codes, int32, into `categories(name)`, and
        `str` too with `text="str"`. `text="bytes"` gives a text column as two arrays: `<name>`, its UTF-8 bytes end to
        end (uint8), and `<name>.offsets` (int64), row i being bytes[offsets[i]:offsets[i + 1]]. With `reuse`, arrays of
        fixed width are valid until the next batch only: they lie in one buffer, or are read-only views of the file
        where it holds the rows side by side. Otherwise every array is the caller's own.

        Raises `FarshiftError` where these numbers do not fit together, `UnknownName` for a column there is not.

        >>> import farshift as fs
        >>> part = fs.load("modadd97/xi35")
        >>> first = next(part.batches(4, seed=0, columns=["a", "b"]))
        >>> first["a"].tolist(), first["b"].tolist()
        ([49, 91, 57, 77], [56, 50, 31, 94])
        """
        cut = GlobalBatches(len(self), batch_size, rank, world, drop_last)
        steps = cut.steps(start, worker, workers)
        readers = {name: self._reader(name, text) for name in self.resolve_columns(columns)}
        return read_batches(readers, self.order(seed, epoch), cut, steps, raw_text=text == "bytes", reuse=reuse)

    def order(self, seed: int | None, epoch: int) -> Order:
        """The order of an epoch; that of the stored rows without a seed.

        >>> import farshift as fs
        >>> fs.load("modadd97/xi35").order(seed=0, epoch=0).sequence[:3].tolist()
        [479, 1382, 3660]
        """
        if seed is None:
            return AsStored()
        if len(self) > STORED_ROWS:
            return make_index_order(self.identity, self.name, seed, epoch, len(self))
        return StoredPermutation(make_epoch_order(self.identity, self.name, seed, epoch, self.row_ids))

    def torch(
        self,
        batch_size: int,
        seed: int | None = 0,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] | None = None,
        *,
        text: Text = "codes",
        rank: int | None = None,
        world: int | None = None,
        images: ImageSpec = "bytes",
        audio: AudioSpec = "bytes",
    ) -> TorchStream:
        """The part as an `IterableDataset` of ready batches, for `DataLoader(stream, batch_size=None)`.

        `batch_size` counts the global batch, over all ranks. See `TorchStream` for ranks, workers and resuming.

        images: `"bytes"` (encoded files), `"PIL"`, a side in pixels (uint8), or a named transform (`"imagenet"`,
        `"resize 256, crop 224, normalise clip"`: float32, channels first). audio: `"bytes"`, or a sampling rate
        (float32 samples). Raises `FarshiftError` for another value.

        >>> import farshift as fs
        >>> stream = fs.load("modadd97/xi35").torch(512)
        >>> len(stream), next(iter(stream))["a"].shape
        (10, torch.Size([512]))
        """
        _require_torch("a torch stream")
        from .batching.torch_stream import TorchStream

        return TorchStream(self, batch_size, seed, epoch, drop_last, columns, text, rank, world, images, audio)

    def on_device(
        self, device: Device | str, columns: Sequence[str] | None = None, text: Literal["bytes"] | None = None
    ) -> DevicePart:
        """The whole part as tensors in a device's memory, in batches by the same order as `batches`.

        Raises `FarshiftError` for a text column, unless `text="bytes"` asks for its bytes and offsets.

        >>> import farshift as fs
        >>> there = fs.load("modadd97/xi35").on_device("cpu", ["a", "b", "sum"])
        >>> next(there.batches(4, seed=0))["a"]
        tensor([49, 91, 57, 77])
        """
        _require_torch("a part on a device")
        from .batching.on_device import DevicePart

        return DevicePart.load(self, device, columns, text)

    def tokens(self, tokenizer: Any, column: str | None = None, most: int | None = None) -> Tokens:
        """A text column as token ids, ragged: tokenised once into the cache, and mapped from there.

        tokenizer: a folder with a `tokenizer.json`, a `tokenizers.Tokenizer`, or a fast tokenizer of transformers.
        column: by default the part's one text among its inputs. most: ids that a text keeps. Raises `MissingExtra`
        without the library `tokenizers`, `FarshiftError` where the column is no text.

        >>> import farshift as fs
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> words = Tokenizer(models.WordLevel({"walk": 0, "twice": 1, "?": 2}, unk_token="?"))
        >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> part = fs.load("scan/length")
        >>> tokens = part.tokens(words)
        >>> part[0]["command"], tokens[0].tolist()
        ('look twice and walk opposite right', [2, 1, 2, 0, 2, 2])
        """
        from .batching.tokenizer import load_tokenizer
        from .batching.tokens import tokenise_texts

        texts = [field.name for field in self.schema.fields if field.item == "string" and not field.shape]
        if column is None:
            own = [name for name in texts if self.schema[name].role == "input"]
            if len(own) != 1:
                raise FarshiftError(f"{self.split} has {len(own)} text inputs: name the column to tokenise")
            column = own[0]
        if self.resolve_columns([column]) and column not in texts:
            raise FarshiftError(f"column {column!r} of {self.split} is no text, and only texts are tokenised")
        return tokenise_texts(self._arrow(column), load_tokenizer(tokenizer, most))

    def token_batches(
        self,
        tokens: Tokens,
        batch_size: int,
        seed: int | None = None,
        epoch: int = 0,
        drop_last: bool = False,
        columns: Sequence[str] = (),
        *,
        pool: int = 64,
        pad: int = 0,
        rank: int = 0,
        world: int = 1,
        worker: int = 0,
        workers: int = 1,
        start: int = 0,
    ) -> Iterator[dict[str, NDArray[Any]]]:
        """One epoch as `batches`: `tokens` (rows, T), filled up with `pad`, and `tokens.lengths`, besides `columns`.

        With a seed, batches hold rows of like length: those of `pool` batches are sorted together, and the batches
        dealt out in random order (`pool=1`: the batches of `batches`). Global batches are the same for every `world`.

        >>> import farshift as fs
        >>> from tokenizers import Tokenizer, models, pre_tokenizers
        >>> words = Tokenizer(models.WordLevel({"walk": 0, "twice": 1, "?": 2}, unk_token="?"))
        >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
        >>> part = fs.load("scan/length")
        >>> first = next(part.token_batches(part.tokens(words), 4, seed=0))
        >>> first["tokens"].shape, first["tokens.lengths"].tolist()
        ((4, 8), [8, 8, 8, 8])
        """
        from .batching.buckets import BucketedOrder, iterate_token_batches

        if len(tokens) != len(self):
            raise FarshiftError(f"{len(tokens)} rows of tokens, and a part of {len(self)}: give those of this part")
        cut = GlobalBatches(len(self), batch_size, rank, world, drop_last)
        order = self.order(seed, epoch)
        if seed is not None and pool > 1:
            name = f"{self.identity}/{self.name}/{seed}/{epoch}/lengths"
            order = BucketedOrder(name, order, tokens.lengths, batch_size, pool)
        readers = {name: self._reader(name, "str") for name in self.resolve_columns(columns)}
        return iterate_token_batches(readers, tokens, order, cut, cut.steps(start, worker, workers), pad)

    def to_hf(self) -> Any:
        """The rows as a `datasets.Dataset`.

        >>> import farshift as fs
        >>> fs.load("modadd97/xi35").to_hf()[0]
        {'a': 47, 'b': 24, 'sum': 71, 'row_id': 3308743156776566, 'corrupted': False}
        """
        from .export.hugging_face import to_hf

        return to_hf(self)

    def to_webdataset(self, folder: Path | str, shard_bytes: int | None = None) -> Path:
        """Write the rows into `folder` as WebDataset shards of at most `shard_bytes` (256 MiB), and return it.

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
        """Write the rows into one Parquet file, and return its path.

        >>> import tempfile
        >>> import farshift as fs
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fs.load("modadd97/xi35").to_parquet(folder + "/train.parquet").name
        'train.parquet'
        """
        from .export import parquet

        return parquet.write(self, file)

    def true_labels(self) -> NDArray[Any]:
        """The true labels, whatever a split made of them; for scorers. Truth values are the classes 0 and 1. Shape
        (rows,).

        >>> import farshift as fs
        >>> part = fs.load("modadd97/xi35")
        >>> part.true_labels()[:4].tolist(), part.observed_labels()[:4].tolist(), part.corrupted[:4].tolist()
        ([71, 62, 57, 54], [71, 62, 19, 54], [False, False, True, False])
        """
        refuse_labels(f"{self.split}, {self.name}")
        return to_classes(_read_all(self._source_column(self.label), len(self)))

    def observed_labels(self) -> NDArray[Any]:
        """The labels as training sees them; truth values as the classes 0 and 1. Shape (rows,)."""
        return to_classes(_read_all(self.column(self.label), len(self)))

    @property
    def corrupted(self) -> NDArray[np.bool_]:
        """Which rows' label was replaced, shape (rows,)."""
        return np.zeros(len(self), bool) if self.override is None else ~np.ma.getmaskarray(self.override)

    def resolve_columns(self, columns: Sequence[str] | None) -> tuple[str, ...]:
        """The named columns, or all; `UnknownName` for one that there is not."""
        if columns is None or self.label in columns:
            refuse_labels(f"{self.split}, {self.name}")
        if columns is None:
            return self.columns
        for name in columns:
            if name not in self.columns:
                raise UnknownName("column", name, self.columns)
        return tuple(columns)

    @property
    def coded(self) -> tuple[str, ...]:
        """The columns that `batches` gives as codes unless asked for texts: those of text and of role meta."""
        return tuple(field.name for field in self.schema.of_role("meta") if field.type == "string")

    def categories(self, name: str) -> NDArray[np.object_]:
        """The texts that the codes of a column stand for, ascending: the same for all parts of a split.

        Raises `UnknownName` for a column that is not given as codes.

        >>> import farshift as fs
        >>> part = fs.load("optdigits/writers")
        >>> part.coded, part.categories("writers").tolist()
        (('writers',), ['13 others', '30 writers'])
        """
        if name not in self.coded:
            raise UnknownName("column of codes", name, self.coded)
        return encode_categories(self.source, name).categories

    def column(self, name: str, text: Text = "str") -> Column:
        """What reads a column by position. Texts that are no Arrow data are objects, unless `text` is "bytes"."""
        if name == self.label:
            refuse_labels(f"{self.split}, {self.name}")
        if (name, text) not in self._opened:
            self._opened[name, text] = self._open(name, text)
        return self._opened[name, text]

    def __getstate__(self) -> dict[str, Any]:
        # Opened columns are views of what travels anyway; as arrays they would travel again.
        return {name: value for name, value in self.__dict__.items() if name not in ("_opened", "_readers")}

    def _reader(self, name: str, text: Text) -> Column:
        """A column as batches read it: made ready once for many of them, and for many passes when there is a second."""
        key = name, text
        known = self._readers.get(key)
        reader = (
            prepare_column(self.column(*key), len(self), text)
            if known is None
            else materialise_column(known, len(self))
        )
        self._readers[key] = reader
        return reader

    @cached_property
    def _readers(self) -> dict[tuple[str, Text], Column]:
        return {}

    @cached_property
    def _opened(self) -> dict[tuple[str, Text], Column]:
        """The columns that were read before: to open one costs as much as a small batch."""
        return {}

    def _open(self, name: str, text: Text) -> Column:
        import pyarrow as pa

        check_text(text)
        if name in self.row_metadata or name == "corrupted":
            values = self.corrupted if name == "corrupted" else self.row_metadata[name]
            is_text = values.dtype == object and text == "bytes"
            return TextColumn(pa.array(values, pa.large_string())) if is_text else FixedColumn(values)
        if text == "codes" and name in self.coded:
            return FixedColumn(encode_categories(self.source, name).codes, self.source_indices)
        column = self._source_column(name)
        if name != self.label or self.override is None:
            return column
        if isinstance(column, FixedColumn):
            return replace(column, override=self.override)
        return TextColumn(self._arrow(name))

    def _source_column(self, name: str) -> Column:
        stored = join_chunks(self.source[name])
        source_indices = self.source_indices if self._first_place is None else None
        if self._first_place is not None:
            stored = stored.slice(self._first_place, len(self))
        kind = "uint64" if name == "row_id" else self.schema[name].item
        if kind in ("string", "bytes"):
            return TextColumn(stored, source_indices)
        shape = () if name == "row_id" else self.schema[name].shape
        flat = (stored.flatten() if shape else stored).to_numpy(zero_copy_only=False)
        return FixedColumn(flat.reshape(-1, *shape), source_indices)

    @cached_property
    def _first_place(self) -> int | None:
        """Where the part begins in its source, if its rows lie side by side there."""
        return int(self.source_indices[0]) if len(self) and bool((np.diff(self.source_indices) == 1).all()) else None

    def _arrow(self, name: str) -> Any:
        """A column as Arrow data, or NumPy data that needs no conversion."""
        import pyarrow as pa

        if name in self.row_metadata:
            return self.row_metadata[name]
        if name == "corrupted":
            return self.corrupted
        column = self.source[name]
        stored = (
            column.chunk(0).take(self.source_indices) if column.num_chunks == 1 else column.take(self.source_indices)
        )
        if name != self.label or self.override is None:
            return stored
        values = np.where(np.ma.getmaskarray(self.override), self.true_labels(), self.override.data)
        values = values.astype(bool) if self.schema[name].type == "bool" else values
        return pa.array(values, stored.type)


def to_classes(labels: NDArray[Any]) -> NDArray[Any]:
    """Labels that are truth values as classes, int64; others as they are."""
    return labels.astype(np.int64) if labels.dtype == bool else labels


def _read_all(column: Column, rows: int) -> NDArray[Any]:
    every = np.arange(rows)
    return column.take(every) if isinstance(column, FixedColumn) else to_object_array(column.take(every))


def _require_torch(what: str) -> None:
    if find_spec("torch") is None:
        raise MissingExtra(what, "train")
