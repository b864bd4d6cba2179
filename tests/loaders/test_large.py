"""Sources larger than memory: built in pieces, by any engine, they are the same bytes as built at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.core.engines import engine, in_order
from farshift.core.errors import BadData, BadDefinition, FarshiftError
from farshift.core.plugins import module
from farshift.loaders.acquire.large import build_in_pieces, in_pieces
from farshift.loaders.acquire.source import identified
from farshift.loaders.readers import parquet
from farshift.splits.schema import Field, Schema
from hypothesis import given, settings
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


def built(folder: Path, files: dict[str, Path], name: str = "local") -> tuple[pa.Table, str]:
    target = folder / "built.arrow"
    digest = build_in_pieces("parquet", {"files": files, "columns": COLUMNS}, SCHEMA, "here", target, name)
    with pa.OSFile(str(target)) as file:
        return pa.ipc.open_file(file).read_all(), digest


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(ROW, max_size=6), min_size=1, max_size=3), st.integers(1, 4))
def test_a_source_in_pieces_has_the_rows_ids_and_digest_of_one_built_at_once(parts, group):
    with tempfile.TemporaryDirectory() as name, patch.object(parquet, "_ROWS", 1):
        folder, files = Path(name), {}
        for number, rows in enumerate(parts):
            files[f"{number}.parquet"] = folder / f"{number}.parquet"
            pq.write_table(table_of(rows), files[f"{number}.parquet"], row_group_size=group)
        with patch("farshift.loaders.acquire.out_of_core._CHUNK", 2):
            table, digest = built(folder, files)
        whole, expected = identified(table_of([row for rows in parts for row in rows]), SCHEMA)
        assert digest == expected
        assert table.schema == whole.schema
        assert table.to_pylist() == whole.to_pylist()
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


def test_every_engine_gives_the_same_bytes(tmp_path, files, monkeypatch):
    monkeypatch.setattr(parquet, "_ROWS", 10)
    contents = set()
    for name in ("local", "processes"):
        built(tmp_path, files, name)
        contents.add((tmp_path / "built.arrow").read_bytes())
    assert len(contents) == 1


def test_a_file_that_is_no_parquet_or_lacks_a_column_is_named(tmp_path, files):
    with pytest.raises(BadData, match=r"rows\.parquet has no column topic \(it has text, raw"):
        parquet.read(files, columns={"label": "topic"})
    files["rows.parquet"].write_bytes(b"PAR1 no more")
    with pytest.raises(BadData, match=r"rows\.parquet: not a readable Parquet file"):
        parquet.read(files, columns=COLUMNS)


def test_missing_values_and_types_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "holes.parquet"
    pq.write_table(pa.table({"text": ["a", None]}), path)
    schema = Schema((Field("text", "string", "input"),))
    with pytest.raises(BadDefinition, match="here has missing values in text"):
        build_in_pieces(
            "parquet", {"files": {"holes.parquet": path}, "columns": {"text": "text"}}, schema, "here", tmp_path / "out"
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["holes.parquet"], "nothing half-done is left"


def test_only_a_reader_with_shards_is_read_in_pieces():
    assert in_pieces(module("loaders/readers", "parquet", "reader"))
    assert not in_pieces(module("loaders/readers", "lines", "reader"))


def cube(number: int) -> int:
    if number == 13:
        raise FarshiftError("13 brings bad luck")
    return number**3


@pytest.mark.parametrize("name", ["local", "processes"])
def test_an_engine_gives_results_in_order_and_passes_errors_on(name):
    assert list(engine(name)(cube, list(range(9)))) == [number**3 for number in range(9)]
    assert list(engine(name)(cube, [])) == []
    with pytest.raises(FarshiftError, match="13 brings bad luck"):
        list(engine(name)(cube, [1, 13, 2]))


@given(st.integers(0, 20), st.integers(1, 5))
def test_no_more_is_started_than_may_be_held(count, ahead):
    waiting: list[int] = []
    most = 0

    def start(item: int) -> int:
        nonlocal most
        waiting.append(item)
        most = max(most, len(waiting))
        return item

    def result(item: int) -> int:
        waiting.remove(item)
        return item * 2

    assert list(in_order(start, result, range(count), ahead)) == [item * 2 for item in range(count)]
    assert most <= ahead


def test_files_without_rows_are_one_error(tmp_path):
    pq.ParquetWriter(tmp_path / "none.parquet", pa.schema({"a": pa.int64()})).close()
    with pytest.raises(BadData, match=r"none.parquet has no rows"):
        parquet.read({"none.parquet": tmp_path / "none.parquet"}, columns={"a": "a"})


def test_options_that_a_reader_does_not_know_are_one_error(tmp_path):
    with pytest.raises(BadDefinition, match="source mine: .*unexpected keyword argument 'column'"):
        build_in_pieces("parquet", {"files": {}, "column": {}}, SCHEMA, "source mine", tmp_path / "a.arrow")


INTERRUPTED = """
import time
from farshift.core.engines import engine
if __name__ == "__main__":
    print("begun", flush=True)
    try:
        list(engine("processes")(time.sleep, [60.0] * 6))
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_ctrl_c_ends_worker_processes_at_once_and_silently(tmp_path):
    (tmp_path / "script.py").write_text(INTERRUPTED)
    pipe = subprocess.PIPE
    command = [sys.executable, tmp_path / "script.py"]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "begun\n"
        time.sleep(2.0)  # until the workers are there
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert (out, "Traceback" in errors) == ("interrupted\n", False)
