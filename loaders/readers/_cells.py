"""Rows of a table as its file has them: cells by column, and where in the file a row stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, shorten_list

if TYPE_CHECKING:
    import pyarrow as pa

Column = str | int
"""A column by its name, or by its place, from 0."""


@dataclass(frozen=True)
class Cells:
    """Some rows of one file. `names` are its columns; `table` has those that are read, each under its place ("0", "1"
    ..), text or of the file's own types; `rows` says which rows of the file they are, from 0; `locate` says where a row
    stands ("line 7")."""

    name: str
    names: Sequence[str]
    table: pa.Table
    rows: NDArray[np.int64]
    locate: Callable[[int], str]

    def column(self, column: Column) -> pa.ChunkedArray:
        return self.table[str(find_column(self.names, column, self.name))]

    def filter_rows(self, which: NDArray[np.bool_]) -> Cells:
        """The rows that are to stay."""
        if which.all():
            return self
        return Cells(self.name, self.names, self.table.filter(which), self.rows[which], self.locate)

    def with_columns(self, names: Sequence[str], columns: Sequence[pa.Array]) -> Cells:
        """The rows with more columns behind their own."""
        table = self.table
        for number, column in enumerate(columns, len(self.names)):
            table = table.append_column(str(number), column)
        return Cells(self.name, [*self.names, *names], table, self.rows, self.locate)

    def wrong(self, index: int, complaint: str) -> BadData:
        """What is wrong in a row, with the file and the line."""
        return BadData(f"{self.name}, {self.locate(int(self.rows[index]))}: {complaint}")


def find_column(names: Sequence[str], column: Column, where: str) -> int:
    """The place of a column: of the first of that name; `BadData` where there is none."""
    if isinstance(column, int):
        if not 0 <= column < len(names):
            raise BadData(f"{where} has no column {column}: it has {len(names)}, from 0")
        return column
    try:
        return list(names).index(column)
    except ValueError:
        raise BadData(
            f"{where} has no column {column!r} (it has {shorten_list(list(names))}){_suggest_separator(names)}"
        ) from None


def _suggest_separator(names: Sequence[str]) -> str:
    """What to do where the only column looks like several."""
    mark = next((mark for mark in (";", "\t", "|", ",") if len(names) == 1 and mark in names[0]), "")
    return f": say by options = {{ separator = {json.dumps(mark)} }} what stands between its cells" if mark else ""


def find_columns(names: Sequence[str], spec: Any, where: str) -> list[int]:
    """The places of what a field is made from: a column, several, or all from `first` to `last`."""
    if isinstance(spec, dict):
        if set(spec) != {"first", "last"}:
            raise BadDefinition(f"{where}: a run of columns is {{ first = .., last = .. }}, and not {spec}")
        first, last = (find_column(names, spec[end], where) for end in ("first", "last"))
        return list(range(first, last + 1))
    if isinstance(spec, list):
        return [find_column(names, column, where) for column in spec]
    return [find_column(names, spec, where)]
