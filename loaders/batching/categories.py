"""Texts as codes: the places of a source's texts among their distinct values, the same for all parts of a split."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .columns import objects, one_array

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Coded:
    """A text column as `codes`, (rows,), into `categories`, its distinct texts by code point, ascending."""

    codes: NDArray[np.int32]
    values: pa.Array

    @property
    def categories(self) -> NDArray[np.object_]:
        """The texts that the codes stand for, as `str`."""
        return objects(self.values)


_CODED: dict[int, dict[str, Coded]] = {}
"""By a table's identity, for as long as it lives: all parts of an opened split share its source's codes."""


def coded(source: pa.Table, name: str) -> Coded:
    """A text column of a source, coded once."""
    held = _CODED.get(id(source))
    if held is None:
        held = _CODED[id(source)] = {}
        weakref.finalize(source, _CODED.pop, id(source), None)
    if name not in held:
        held[name] = _code(source[name])
    return held[name]


def _code(column: pa.ChunkedArray) -> Coded:
    import pyarrow.compute as pc

    found = one_array(column).dictionary_encode()
    order = pc.sort_indices(found.dictionary).to_numpy()
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return Coded(place[found.indices.to_numpy()], found.dictionary.take(order))
