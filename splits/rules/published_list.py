"""Splits published as lists of rows, which are read once, when the split is frozen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadData, BadDefinition, UnknownName
from ..assignment import Assignment

if TYPE_CHECKING:
    import pyarrow as pa


def of_numbers(table: pa.Table, *, field: str, files: dict[str, Path], listed: str, rest: str) -> Assignment:
    """Rows whose tensor `field` is in the published file, as the first numbers of a line of comma-separated values, are
    `ood_test` with the group `listed`; all others train, with the group `rest`.

    Raises `BadData` if a line matches no row, or several.

    Parameters:
        field: the tensor field that identifies rows.
        listed: the name of the group of the listed rows.
        rest: the name of the group of all others.
    """
    import pyarrow.compute as pc

    if len(files) != 1:
        raise BadDefinition("of_numbers reads one published file")
    ((name, path),) = files.items()
    if field not in table.column_names:
        raise UnknownName("field", field, table.column_names)
    column = table[field].combine_chunks()
    values = pc.list_flatten(column).to_numpy().reshape(table.num_rows, -1)
    width = values.shape[1]
    places: dict[tuple[int, ...], list[int]] = {}
    for index, row in enumerate(values.tolist()):
        places.setdefault(tuple(row), []).append(index)
    part = np.full(table.num_rows, "train", dtype="U8")
    for number, line in enumerate(path.read_text("utf-8").splitlines()):
        if not line.strip():
            continue
        try:
            indices = places.get(tuple(int(cell) for cell in line.split(",")[:width]), [])
        except ValueError as error:
            raise BadData(f"{name}: line {number + 1} does not begin with {width} whole numbers") from error
        if len(indices) != 1:
            raise BadData(f"{name}: line {number + 1} matches {len(indices)} rows of the source")
        part[indices[0]] = "ood_test"
    return Assignment(part=part, group=np.where(part == "train", rest, listed))
