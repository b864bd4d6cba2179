"""Splits as they were published: by a field that says which part a row was in, or by the lists that came with them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadData, BadDefinition
from ..assignment import Assignment
from ..measures.words import group_by_word, read_numeric_column, read_text_column
from ._where import Conditions, match_conditions

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
    """Rows go to the part that `parts` names for their published one (`field`); those of others are dropped.

    Parameters:
        field: the field of the published part.
        parts: for each published part the part that its rows go to.
        only: for a published part the conditions that its rows must meet, or else be dropped, such as
            `{ gen = { type = ["cp_recursion"] } }`.
        group: the field that is the group.
        severity: the field that is the severity.
        weight: the field that counts the copies in which a row was published.
    """
    part = np.full(table.num_rows, "", dtype="U8")
    for origin, name in parts.items():
        part[match_conditions(table, {field: [origin], **(only or {}).get(origin, {})})] = name
    if stray := sorted(set(only or {}) - set(parts)):
        raise BadDefinition(f"only: {', '.join(stray)} is no part that `parts` names")
    return Assignment(
        part=part,
        weight=None if weight is None else read_numeric_column(table, weight).astype(np.int64),
        group=_read_groups(table, group),
        severity=_read_numbers(table, severity),
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
    """Rows go to the part that `parts` names for the file on one of whose lines they stand; the others are dropped.

    Parameters:
        field: the text field by which rows are found.
        parts: for each published file, by its name, the part that its rows go to.
        pattern: a regular expression that fits every line; its group `row` is the row's text in `field`.
    """
    values = read_text_column(table, field).to_pylist()
    part = np.full(len(values), "", dtype="U8")
    places = {value: at for at, value in enumerate(values)}
    for name, goes_to in parts.items():
        for number, line in enumerate(_find_file(files, name).read_text("utf-8").splitlines(), 1):
            match = re.fullmatch(pattern, line.rstrip())
            if not match:
                raise BadData(f"{name}: line {number} does not fit the pattern: {line[:60]!r}")
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
    """Rows go to the part that `parts` names for the list, in a file of JSON lists by name, that holds their number
    (`field`); the others are dropped.

    Parameters:
        field: the whole-number field by which rows are found.
        parts: for each published list, by its name, the part that its rows go to.
        group: the field that is the group.
        severity: the field that is the severity.
        beyond_training: whether rows of `ood_test` whose severity training reaches are dropped, which a list cut at a
            count of rows leaves on both sides.
    """
    if len(files) != 1:
        raise BadDefinition("published/numbers reads one file of lists")
    ((name, path),) = files.items()
    try:
        lists: dict[str, list[int]] = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise BadData(f"{name} is not JSON: {error}") from error
    if lists.keys() != parts.keys():
        raise BadData(
            f"{name} holds the lists {', '.join(sorted(lists))}, and `parts` names {', '.join(sorted(parts))}"
        )
    part = np.full(table.num_rows, "", dtype="U8")
    places = {value: at for at, value in enumerate(read_numeric_column(table, field).tolist())}
    for key, goes_to in parts.items():
        for number in lists[key]:
            _assign_row(part, places, number, goes_to, f"{name}, {key}")
    measure = _read_numbers(table, severity)
    if beyond_training:
        if measure is None:
            raise BadDefinition("beyond_training needs a severity")
        part[(part == "ood_test") & (measure <= measure[part == "train"].max())] = ""
    return Assignment(part=part, group=_read_groups(table, group), severity=measure)


def _find_file(files: dict[str, Path], name: str) -> Path:
    if name not in files:
        raise BadDefinition(f"`parts` names the file {name}, and `files` has {', '.join(sorted(files))}")
    return files[name]


def _assign_row(part: NDArray[np.str_], places: dict[Any, int], value: Any, goes_to: str, where_listed: str) -> None:
    """Put one listed row into its part; `BadData` where there is no such row, or it is listed for another part too."""
    if value not in places:
        raise BadData(f"{where_listed}: no row is {value!r}")
    at = places[value]
    if part[at] not in ("", goes_to):
        raise BadData(f"{where_listed}: {value!r} is listed for {part[at]} and for {goes_to}")
    part[at] = goes_to


def _read_groups(table: pa.Table, field: str | None) -> NDArray[np.str_] | None:
    return None if field is None else np.asarray(read_text_column(table, field).to_pylist(), dtype=np.str_)


def _read_numbers(table: pa.Table, field: str | None) -> NDArray[np.int64] | NDArray[np.float64] | None:
    return None if field is None else read_numeric_column(table, field)
