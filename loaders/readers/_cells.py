"""Rows of a table as stored in its file: cells by column, and the location of each row in the file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition, shorten_list

Column = str | int
"""A column: its name, or its index from 0."""


@dataclass(frozen=True)
class Cells:
    """Some rows of one file. `names` are the file's columns; `table` has those that are read, each named by its index
    ("0", "1" ..), as text or with the file's own types; `rows` are the row numbers in the file, from 0; `locate` gives
    the location of a row ("line 7")."""

    name: str
    names: Sequence[str]
    table: pa.Table
    rows: NDArray[np.int64]
    locate: Callable[[int], str]

    def column(self, column: Column) -> pa.ChunkedArray:
        return self.table[str(find_column(self.names, column, self.name))]

    def filter_rows(self, which: NDArray[np.bool_]) -> Cells:
        """Keep the rows that the mask selects."""
        if which.all():
            return self
        return Cells(self.name, self.names, self.table.filter(which), self.rows[which], self.locate)

    def with_columns(self, names: Sequence[str], columns: Sequence[pa.Array]) -> Cells:
        """Append columns."""
        table = self.table
        for number, column in enumerate(columns, len(self.names)):
            table = table.append_column(str(number), column)
        return Cells(self.name, [*self.names, *names], table, self.rows, self.locate)

    def wrong(self, index: int, complaint: str) -> BadData:
        """Make an error for a row, with its file and line."""
        return BadData(f"{self.name}, {self.locate(int(self.rows[index]))}: {complaint}")


def find_column(names: Sequence[str], column: Column, where: str) -> int:
    """Return the index of a column (the first with that name). Raises `BadData` if there is none."""
    if isinstance(column, int):
        if not 0 <= column < len(names):
            raise BadData(f"{where} has no column {column}: it has {len(names)}, numbered from 0")
        return column
    try:
        return list(names).index(column)
    except ValueError:
        raise BadData(
            f"{where} has no column {column!r} (it has {shorten_list(list(names))}){_suggest_separator(names)}"
        ) from None


def _suggest_separator(names: Sequence[str]) -> str:
    """Suggest a separator if the only column looks like several."""
    mark = next((mark for mark in (";", "\t", "|", ",") if len(names) == 1 and mark in names[0]), "")
    return f": set the separator of its cells with options = {{ separator = {json.dumps(mark)} }}" if mark else ""


def find_columns(names: Sequence[str], spec: Any, where: str) -> list[int]:
    """Return the indices of a field's columns: one column, several, or all from `first` to `last`."""
    if isinstance(spec, dict):
        if set(spec) != {"first", "last"}:
            raise BadDefinition(f"{where}: a range of columns is {{ first = .., last = .. }}, not {spec}")
        first, last = (find_column(names, spec[end], where) for end in ("first", "last"))
        return list(range(first, last + 1))
    if isinstance(spec, list):
        return [find_column(names, column, where) for column in spec]
    return [find_column(names, spec, where)]
