"""Columns of Parquet are measured before they are decoded, wherever a text that repeats is hidden."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.core.errors import BadData
from farshift.loaders.readers._table_files import refuse_expansion

ROWS = 20_000
LONG = "x" * 1_000_000
ENDS = np.arange(ROWS + 1, dtype=np.int32)


def repeated(first: int | None = 0) -> pa.Array:
    """A long text in every row but the first."""
    return pa.DictionaryArray.from_arrays(pa.array([first, *[1] * (ROWS - 1)], pa.int32()), pa.array(["y", LONG]))


HIDDEN = {
    "behind a short text": repeated(),
    "behind a missing one": repeated(None),
    "in lists": pa.ListArray.from_arrays(ENDS, repeated()),
    "behind an empty list": pa.ListArray.from_arrays(np.array([0, *ENDS[:-1]], np.int32), repeated()),
    "in structures": pa.StructArray.from_arrays([repeated()], ["bytes"]),
    "behind a missing structure": pa.StructArray.from_arrays(
        [repeated()], ["bytes"], mask=pa.array([True, *[False] * (ROWS - 1)])
    ),
    "in maps": pa.MapArray.from_arrays(ENDS, pa.array(["k"] * ROWS).dictionary_encode(), repeated()),
}


def measure(column: pa.Array, rows: int = ROWS) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"x": column}), out, row_group_size=rows, store_schema=False)
    refuse_expansion(out, pq.ParquetFile(out).metadata, ["x"], "a.parquet")


@pytest.mark.parametrize("place", HIDDEN)
@pytest.mark.parametrize("rows", [ROWS, ROWS // 10])
def test_a_text_that_repeats_is_counted_each_time(place, rows):
    with pytest.raises(BadData, match=r"^a\.parquet: column x[a-z_.]* unpacks to more than [\d,]+ bytes from [\d,]+:"):
        measure(HIDDEN[place], rows)


def test_one_long_text_among_short_ones_is_counted_once():
    measure(pa.array([LONG, *["y"] * 200_000]), 20_000)
