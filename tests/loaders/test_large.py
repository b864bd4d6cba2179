"""Sources larger than memory: built in pieces, they are the same bytes as built at once."""

from __future__ import annotations

import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.core.errors import BadData
from farshift.loaders.acquire.piecewise import build_in_pieces
from farshift.loaders.acquire.source import add_row_ids
from farshift.loaders.readers import _table_files, read_tables
from farshift.loaders.readers.table import read_table
from farshift.splits.schema import Field, Schema
from hypothesis import given
from hypothesis import strategies as st

SCHEMA = Schema(
    (
        Field("text", "string", "input"),
        Field("raw", "bytes", "meta"),
        Field("pixels", "uint8[2,2]", "input"),
        Field("score", "float64", "meta"),
        Field("sure", "bool", "meta"),
        Field("label", "int64", "label"),
    )
)
COLUMNS = {field.name: field.name for field in SCHEMA.fields}

ROW = st.fixed_dictionaries(
    {
        "text": st.text(max_size=4),
        "raw": st.binary(max_size=3),
        "pixels": st.lists(st.integers(0, 2), min_size=4, max_size=4),
        "score": st.floats(-2, 2),
        "sure": st.booleans(),
        "label": st.integers(0, 2),
    }
)


def table_of(rows: list[dict]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA.arrow())


def build(arguments: dict, schema: Schema, target: Path) -> str:
    return build_in_pieces(read_tables("table", arguments, schema, "here"), schema, "here", target)


def built(folder: Path, files: dict[str, Path]) -> tuple[pa.Table, str]:
    target = folder / "built.arrow"
    digest = build({"files": files, "columns": COLUMNS}, SCHEMA, target)
    with pa.OSFile(str(target)) as file:
        return pa.ipc.open_file(file).read_all(), digest


@given(st.lists(st.lists(ROW, max_size=6), min_size=1, max_size=3), st.integers(1, 4))
def test_a_source_in_pieces_has_the_rows_ids_and_digest_of_one_built_at_once(parts, group):
    with tempfile.TemporaryDirectory() as name, patch.object(_table_files, "_ROWS", 1):
        folder, files = Path(name), {}
        for number, rows in enumerate(parts):
            files[f"{number}.parquet"] = folder / f"{number}.parquet"
            pq.write_table(table_of(rows), files[f"{number}.parquet"], row_group_size=group)
        with patch("farshift.loaders.acquire.piecewise._CHUNK", 2):
            table, digest = built(folder, files)
        full, expected = add_row_ids(table_of([row for rows in parts for row in rows]), SCHEMA)
        assert digest == expected
        assert table.schema == full.schema
        assert table.to_pylist() == full.to_pylist()
        assert sorted(path.name for path in folder.iterdir()) == sorted([*files, "built.arrow"])


@pytest.fixture
def files(tmp_path):
    rows = [
        {"text": f"row {i % 40}", "raw": b"", "pixels": [i % 2] * 4, "score": 0.5, "sure": True, "label": i % 3}
        for i in range(100)
    ]
    path = tmp_path / "rows.parquet"
    pq.write_table(table_of(rows), path, row_group_size=10)
    return {"rows.parquet": path}


def test_the_stored_file_is_one_record_batch(tmp_path, files):
    table, _ = built(tmp_path, files)
    assert [column.num_chunks for column in table.columns] == [1] * len(table.columns)
    assert (np.diff(table["row_id"].to_numpy().astype(object)) > 0).all()


def test_files_without_rows_are_one_error(tmp_path):
    pq.ParquetWriter(tmp_path / "none.parquet", pa.schema({"a": pa.int64()})).close()
    with pytest.raises(BadData, match=r"none.parquet has no rows"):
        read_table({"none.parquet": tmp_path / "none.parquet"}, columns={"a": "a"})
