"""Labelled texts: tab-separated tables whose first line names the columns; cells with quotes are quoted.

A second file may have other labels of the same texts in the same order, such as distant supervision.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa

_NONE: Mapping[str, Any] = MappingProxyType({})


def read(
    files: dict[str, Path],
    *,
    texts: dict[str, str],
    labels: dict[str, str],
    classes: list[str],
    constants: dict[str, dict[str, str]],
    relabelled: Mapping[str, dict[str, str]] = _NONE,
    number: str = "",
) -> pa.Table:
    """One row per line of the files in `constants`, in that order.

    texts, labels: the column of each field; a label is the index of its text in `classes`. constants: for each file,
    the fields that are the same in all its rows, such as `{ "dev.tsv" = { part = "dev" } }`. relabelled: for a file
    `{ field = other file }`, where the other file has the same texts in the same order with its own labels; the field
    is -1 in files without one. number: the field of the row's index in its file, from 0.
    """
    import pyarrow as pa

    others = {other for pairs in relabelled.values() for other in pairs.values()}
    if set(files) != {*constants, *others}:
        raise BadDefinition(
            f"labelled_texts reads {', '.join([*constants, *others])}, but the files are {', '.join(files)}"
        )
    given = sorted({field for pairs in relabelled.values() for field in pairs})
    columns: dict[str, list[Any]] = {field: [] for field in (*texts, *labels, *given)}
    columns |= {field: [] for field in (*next(iter(constants.values())), *([number] if number else []))}
    for name, same in constants.items():
        table = _read_cells(name, files[name])
        file_columns: dict[str, list[Any]] = {
            field: _get_column(name, table, column) for field, column in texts.items()
        }
        rows = len(table) - 1
        file_columns |= {
            field: _encode_labels(name, _get_column(name, table, column), classes) for field, column in labels.items()
        }
        for field in given:
            file_columns[field] = [-1] * rows
        for field, other in relabelled.get(name, {}).items():
            beside = _read_cells(other, files[other])
            for text, column in texts.items():
                if file_columns[text] != _get_column(other, beside, column):
                    raise BadData(f"{other} does not have the texts of {name} in the same order")
            (column,) = set(labels.values())
            file_columns[field] = _encode_labels(other, _get_column(other, beside, column), classes)
        file_columns |= {field: [value] * rows for field, value in same.items()}
        if number:
            file_columns[number] = list(range(rows))
        for field, values in file_columns.items():
            columns[field] += values
    return pa.table(columns)


def _read_cells(name: str, path: Path) -> list[list[str]]:
    """Read the cells of each line; every line must have as many as the first."""
    try:
        table = list(csv.reader(read_utf8_lines(name, path), delimiter="\t", strict=True))
    except csv.Error as error:
        raise BadData(f"{name} is not a table of tab-separated cells: {error}") from error
    for number, cells in enumerate(table, 1):
        if len(cells) != len(table[0]):
            raise BadData(f"{name}: line {number} has {len(cells)} cells, but the first line has {len(table[0])}")
    if len(table) < 2:
        raise BadData(f"{name} has no rows")
    return table


def _get_column(name: str, table: list[list[str]], column: str) -> list[str]:
    if column not in table[0]:
        raise BadData(f"{name}: no column {column!r} among {', '.join(table[0])}")
    index = table[0].index(column)
    return [cells[index] for cells in table[1:]]


def _encode_labels(name: str, values: list[str], classes: list[str]) -> list[int]:
    for number, value in enumerate(values, 2):
        if value not in classes:
            raise BadData(f"{name}: line {number}: the label {value!r} is not one of {', '.join(classes)}")
    return [classes.index(value) for value in values]
