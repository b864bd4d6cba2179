"""Texts as token ids: tokenised once into the cache, then memory-mapped.

A cache entry (`tokens/<tokenizer>-<key>.arrow`) has the ids of some texts in order, as ragged rows. Its key is made
from a digest of the texts and of the tokenizer. One process builds at a time, and waiting processes use its result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...core.canonical import compute_identity
from ...core.errors import FarshiftError, MissingExtra, get_first_line
from ...core.files import get_cache_root
from ...core.progress import log_message, report_progress
from ..cache.entries import read_cache_limit
from ..cache.store import load_or_build_table
from .columns import join_chunks
from .encoded import digest_contents

if TYPE_CHECKING:
    import pyarrow as pa

Texts: TypeAlias = "Sequence[str] | NDArray[Any] | pa.Array"
"""Texts in a list, an object array or an Arrow array."""

_AT_ONCE = 8192
"""The number of texts that are tokenised at once."""


@dataclass(frozen=True)
class Tokens:
    """Token ids of texts, n rows of variable length: those of row i are ids[offsets[i]:offsets[i + 1]]."""

    offsets: NDArray[np.int64]
    ids: NDArray[Any]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each row, shape (n,)."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> NDArray[Any]:
        """The ids of one row, not copied."""
        if not 0 <= row < len(self):
            raise IndexError(f"row {row} of {len(self)} texts")
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def take(self, rows: NDArray[np.int64], pad: int = 0) -> NDArray[np.int64]:
        """Return the ids of some rows, right-padded with `pad`: (rows, T), where T is the length of the longest, at
        least 1."""
        padded_ids = np.full((len(rows), max(1, int(self.lengths[rows].max(initial=1)))), pad, np.int64)
        for position, row in enumerate(rows.tolist()):
            padded_ids[position, : self.lengths[row]] = self[row]
        return padded_ids


def tokenise_texts(texts: Texts, by: PinnedTokenizer) -> Tokens:
    """Tokenise texts (n,): memory-mapped from the cache, into which they are tokenised first if needed.

    If they do not fit into the cache, a message says so, and they are tokenised into memory."""
    digest = digest_contents(text.encode() for block in _iterate_blocks(texts) for text in block)
    key = compute_identity({"format": 2, "texts": digest, "tokenizer": by.digest})
    read_cache_limit()  # raises an error for an invalid limit before any work
    plain = re.sub(r"[^A-Za-z0-9_.-]", "-", by.name).strip("-.") or "tokenizer"
    path = get_cache_root() / "tokens" / f"{plain}-{key[:16]}.arrow"
    try:
        table = load_or_build_table(path, lambda: _tokenise(texts, by))
    except FarshiftError as error:
        log_message(f"{len(texts):,} texts are tokenised into memory: {error}")
        table = _tokenise(texts, by)
    lists = join_chunks(table["ids"])
    return Tokens(lists.offsets.to_numpy(), lists.values.to_numpy())


def _iterate_blocks(texts: Texts) -> Iterator[list[str]]:
    for start in range(0, len(texts), _AT_ONCE):
        block: Any = texts[start : start + _AT_ONCE]
        yield block.to_pylist() if hasattr(block, "to_pylist") else list(block)


def _tokenise(texts: Texts, by: PinnedTokenizer) -> pa.Table:
    import pyarrow as pa

    lengths, ids = [0], [np.zeros(0, by.dtype)]
    for block in _iterate_blocks(texts):
        for row in by.ids(block):
            lengths.append(len(row))
            ids.append(np.array(row, by.dtype))
        if len(texts) > _AT_ONCE:
            report_progress(f"tokenising by {by.name}", len(lengths) - 1, len(texts))
    offsets = np.cumsum(lengths, dtype=np.int64)
    return pa.table({"ids": pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(ids)))})


@dataclass(frozen=True)
class PinnedTokenizer:
    """Converts texts to token ids by the library `tokenizers`; see `load_tokenizer`. most: the maximum number of ids of
    a text, special tokens included; None for no limit."""

    name: str
    core: Any
    most: int | None = None

    @cached_property
    def digest(self) -> str:
        """The digest of vocabulary, normaliser, special tokens .., of `most`, and of the library's version."""
        import tokenizers

        core_digest = sha256(self.core.to_str().encode()).hexdigest()
        return compute_identity({"tokenizer": core_digest, "most": self.most, "version": tokenizers.__version__})

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The narrowest type that can represent all ids."""
        highest = max(self.core.get_vocab(with_added_tokens=True).values(), default=0)
        return np.dtype(np.uint16 if highest < 2**16 else np.uint32)

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """Tokenise each text, on all cores."""
        return [encoding.ids for encoding in self.core.encode_batch_fast(texts)]


def load_tokenizer(given: Any, most: int | None = None) -> PinnedTokenizer:
    """Load the tokenizer of a folder that `save_pretrained` wrote (its `tokenizer.json`), or of that file; or copy a
    `tokenizers.Tokenizer`, or a fast tokenizer of transformers. Later changes to `given` have no effect.

    Raises `MissingExtra` without the library, `FarshiftError` for anything else."""
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtra("tokenising texts", "hf") from error
    kind: Any = tokenizers.Tokenizer
    if isinstance(given, str | Path):
        path = Path(given).expanduser()
        file = path / "tokenizer.json" if path.is_dir() else path
        if not file.is_file():
            raise FarshiftError(f"tokenizer {given}: there is no {file}: give a folder with a tokenizer.json")
        name = file.resolve().parent.name
        try:
            core = kind.from_file(str(file))
        except MemoryError:  # not a fault of the file
            raise
        except Exception as error:  # the library raises plain exceptions
            raise FarshiftError(f"tokenizer {given}: {file} cannot be read: {get_first_line(error)}") from error
    else:
        inner = getattr(given, "backend_tokenizer", given)
        if not isinstance(inner, kind):
            raise FarshiftError(
                f"{type(given).__name__} is not a tokenizer: give a folder with a tokenizer.json, a "
                "tokenizers.Tokenizer, or a fast tokenizer of transformers"
            )
        name = Path(str(getattr(given, "name_or_path", "") or "tokenizer")).name
        core = kind.from_str(inner.to_str())
    core.no_padding()
    if most is None:
        core.no_truncation()
    else:
        core.enable_truncation(max_length=most)
    return PinnedTokenizer(name, core, most)
