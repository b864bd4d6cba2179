"""Texts as codes: indices into a source's distinct texts, the same for all parts of a split."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .columns import join_chunks, to_object_array

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class CategoryCodes:
    """A text column as `codes`, shape (rows,), into `categories`, its distinct texts sorted by code point."""

    codes: NDArray[np.int32]
    values: pa.Array

    @property
    def categories(self) -> NDArray[np.object_]:
        """The distinct texts, as `str`."""
        return to_object_array(self.values)


_CODED: dict[int, dict[str, CategoryCodes]] = {}
"""Cached by table object for its lifetime: all parts of an opened split share the codes of their source."""


def encode_categories(source: pa.Table, name: str) -> CategoryCodes:
    """Return the codes of a source's text column, computed once."""
    cached_columns = _CODED.get(id(source))
    if cached_columns is None:
        cached_columns = _CODED[id(source)] = {}
        weakref.finalize(source, _CODED.pop, id(source), None)
    if name not in cached_columns:
        cached_columns[name] = _encode_column(source[name])
    return cached_columns[name]


def _encode_column(column: pa.ChunkedArray) -> CategoryCodes:
    import pyarrow.compute as pc

    dictionary_array = join_chunks(column).dictionary_encode()
    order = pc.sort_indices(dictionary_array.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order), dtype=np.int32)
    return CategoryCodes(ranks[dictionary_array.indices.to_numpy()], dictionary_array.dictionary.take(order))
