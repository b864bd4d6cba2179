"""A CSV of numbers without a header: some columns make one tensor, one is the label, row ranges name an origin."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadData, BadDefinition, first_line

if TYPE_CHECKING:
    import pyarrow as pa


def read(
    files: dict[str, Path],
    *,
    tensor: str,
    dtype: str,
    columns: int,
    label: str,
    header: bool = False,
    origin: str | None = None,
    ranges: dict[str, list[int]] | None = None,
) -> pa.Table:
    """`tensor` from the first `columns` columns, `label` (a whole number) from the last one, and, where the file's
    order tells where a row comes from, the text column `origin`: the name of the range [first, last) of rows."""
    import pyarrow as pa
    import pyarrow.csv

    if len(files) != 1:
        raise BadDefinition("csv_numbers reads one file")
    ((name, path),) = files.items()
    try:
        table = pa.csv.read_csv(path, read_options=pa.csv.ReadOptions(autogenerate_column_names=not header))
    except pa.ArrowInvalid as error:
        raise BadData(f"{name}: not a readable CSV: {first_line(error)}") from error
    if table.num_columns != columns + 1:
        raise BadData(f"{name} has {table.num_columns} columns, expected {columns + 1}")
    values = np.column_stack([column.to_numpy() for column in table.columns[:-1]])
    whole = values.astype(dtype)
    if not np.array_equal(whole, values):
        raise BadData(f"{name}: values do not fit {dtype}")
    flat = pa.array(np.ascontiguousarray(whole).ravel())
    found = {tensor: pa.FixedSizeListArray.from_arrays(flat, columns), label: table.columns[-1].cast(pa.int64())}
    if origin and ranges:
        names = np.full(table.num_rows, "", dtype=f"U{max(map(len, ranges))}")
        for key, (first, last) in ranges.items():
            names[first:last] = key
        if (names == "").any():
            raise BadData(f"{name} has {table.num_rows} rows, and the ranges of {origin!r} do not cover them")
        found[origin] = pa.array(names.tolist())
    return pa.table(found)
