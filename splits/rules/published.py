"""Splits as published: by a field with the published part of a row, or by published lists of rows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.documents import read_json
from ...core.errors import BadData, BadDefinition
from ..assignment import Assignment
from ..measures.words import group_by_word, read_names, read_numeric_column, read_text_column
from ._conditions import Conditions, match_conditions

if TYPE_CHECKING:
    import pyarrow as pa


def parts(
    table: pa.Table,
    *,
    field: str,
    parts: dict[str, str],
    only: dict[str, Conditions] | None = None,
    group: str | None = None,
    severity: str | None = None,
    weight: str | None = None,
) -> Assignment:
    """The published split. `parts` maps each published part (`field`) to a part; rows of other published parts are
    dropped.

    Parameters:
        field: the field with the published part.
        parts: the part of each published part.
        only: for a published part the conditions that its rows must meet (others are dropped), such as
            `{ gen = { type = ["cp_recursion"] } }`.
        group: the group field.
        severity: the severity field.
        weight: the field with the number of published copies of a row.
    """
    part = np.full(table.num_rows, "", dtype="U8")
    for origin, name in parts.items():
        part[match_conditions(table, {field: [origin], **(only or {}).get(origin, {})})] = name
    if stray := sorted(set(only or {}) - set(parts)):
        raise BadDefinition(f"only: {', '.join(stray)} is not a key of `parts`")
    return Assignment(
        part=part,
        weight=read_numeric_column(table, weight).astype(np.int64) if weight else None,
        group=read_names(table, group) if group else None,
        severity=read_numeric_column(table, severity) if severity else None,
    )


def texts(
    table: pa.Table,
    *,
    field: str,
    parts: dict[str, str],
    pattern: str,
    files: dict[str, Path],
    group_words: list[str] | None = None,
) -> Assignment:
    """`parts` maps each published file to a part; a row goes to the part of the file that lists it, others are dropped.

    Parameters:
        field: the text field that identifies rows.
        parts: the part of each published file, by file name.
        pattern: a regular expression that matches every line; its group `row` is the row's text in `field`.
    """
    values = read_text_column(table, field).to_pylist()
    part = np.full(len(values), "", dtype="U8")
    places = {value: at for at, value in enumerate(values)}
    for name, goes_to in parts.items():
        for number, line in enumerate(_find_file(files, name).read_text("utf-8").splitlines(), 1):
            match = re.fullmatch(pattern, line.rstrip())
            if not match:
                raise BadData(f"{name}: line {number} does not match the pattern: {line[:60]!r}")
            _assign_row(part, places, match["row"], goes_to, f"{name}, line {number}")
    return Assignment(part=part, group=group_by_word(table, group_words, field))


def numbers(
    table: pa.Table,
    *,
    field: str,
    parts: dict[str, str],
    files: dict[str, Path],
    group: str | None = None,
    severity: str | None = None,
    beyond_training: bool = False,
) -> Assignment:
    """A file has named JSON lists of row numbers (`field`), and `parts` maps each list to a part; rows in no list are
    dropped.

    Parameters:
        field: the integer field that identifies rows.
        parts: the part of each published list, by its name.
        group: the group field.
        severity: the severity field.
        beyond_training: whether to drop rows of `ood_test` whose severity also occurs in training, as happens if lists
        were
            cut at a number of rows.
    """
    if len(files) != 1:
        raise BadDefinition("published/numbers reads one file of lists")
    ((name, path),) = files.items()
    try:
        lists: dict[str, list[int]] = read_json(path)
    except ValueError as error:
        raise BadData(f"{name} is not JSON: {error}") from error
    if lists.keys() != parts.keys():
        raise BadData(f"{name} has the lists {', '.join(sorted(lists))}, but `parts` names {', '.join(sorted(parts))}")
    part = np.full(table.num_rows, "", dtype="U8")
    places = {value: at for at, value in enumerate(read_numeric_column(table, field).tolist())}
    for key, goes_to in parts.items():
        for number in lists[key]:
            _assign_row(part, places, number, goes_to, f"{name}, {key}")
    measure = read_numeric_column(table, severity) if severity else None
    if beyond_training:
        if measure is None:
            raise BadDefinition("beyond_training needs a severity")
        part[(part == "ood_test") & (measure <= measure[part == "train"].max())] = ""
    return Assignment(part=part, group=read_names(table, group) if group else None, severity=measure)


def _find_file(files: dict[str, Path], name: str) -> Path:
    if name not in files:
        raise BadDefinition(f"`parts` names the file {name}, but `files` has {', '.join(sorted(files))}")
    return files[name]


def _assign_row(part: NDArray[np.str_], places: dict[Any, int], value: Any, goes_to: str, where_listed: str) -> None:
    """Put one listed row into its part; `BadData` if no row matches, or if it is listed for another part too."""
    if value not in places:
        raise BadData(f"{where_listed}: no row is {value!r}")
    at = places[value]
    if part[at] not in ("", goes_to):
        raise BadData(f"{where_listed}: {value!r} is listed for {part[at]} and for {goes_to}")
    part[at] = goes_to
