"""Whole numbers of one's own data come back as they were written, or stay text: none is rounded without a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from farshift.core.progress import report_to
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.type_inference import TypeInference
from farshift.loaders.readers import table
from farshift.splits.schema import Field, Schema
from own_source import pin_source
from support import Heard

ROWS = 30
FITS, LONG = [2**63 - 1 - row for row in range(ROWS)], [10**19 + row for row in range(ROWS)]


def pinned(path: Path, columns: dict[str, list], **said):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if path.suffix == ".csv":
        path.write_text("\n".join([",".join(columns), *(",".join(map(str, row.values())) for row in rows)]) + "\n")
    else:
        path.write_text("\n".join(map(json.dumps, rows)))
    output = Heard()
    with report_to(output):
        data = Data.model_validate({"files": [path.name]} | said)
        return pin_source(data, path.stem, path.parent, path.parent), " ".join(output.lines)


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_ids_that_int64_carries_are_whole_numbers_and_longer_ones_are_text(tmp_path, cache, form):
    columns = {"user": FITS, "tweet": LONG, "site": LONG, "y": [row % 2 for row in range(ROWS)]}
    built, output = pinned(tmp_path / f"ids.{form}", columns, inputs=["user", "tweet"], labels=["y"], meta=["site"])
    types = {field.name: field.type for field in built.schema.fields}
    assert types == {"user": "int64", "tweet": "string", "site": "string", "y": "int64"}
    rows = built.table()
    assert sorted(rows["user"].to_pylist()) == sorted(FITS)
    assert sorted(rows["site"].to_pylist()) == sorted(map(str, LONG))
    assert f"[data] tweet is text: most of its values are numbers, but not '{LONG[0]}': set" in output


def test_who_wants_long_numbers_rounded_says_so(tmp_path, cache):
    columns = {"x": LONG, "y": [row % 2 for row in range(ROWS)]}
    built, _ = pinned(tmp_path / "big.csv", columns, inputs=["x"], labels=["y"], types={"x": "float64"})
    assert set(built.table()["x"].to_pylist()) == {1e19}


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["9223372036854775807", "-9223372036854775808"], "int64"),
        (["9223372036854775808"], "string"),
        (["0.5", "9007199254740993"], "string"),  # 2**53 + 1, in a column of numbers with a fraction
        (["0.5", "9007199254740992"], "float64"),
        (["1.0", "9007199254740993"], "string"),  # 1.0 is read as float64
        (["9007199254740993.0"], "string"),
        (["1e300", "1.2345678901234567e+18"], "float64"),
        (["1" * 5000], "string"),
        (["[12345678901234567890]"], "string"),
        (["1", "NaN"], "int64"),
        (["NaN"], "float64"),
        (["true", "nan"], "bool"),
    ],
)
def test_a_column_is_of_a_type_that_carries_all_its_values(texts, kind):
    assert TypeInference.of(texts).type == kind


def test_json_numbers_that_no_float_carries_stay_as_they_are_written(tmp_path):
    (tmp_path / "n.jsonl").write_text('{"x": 9007199254740993.0}\n{"x": 0.1234567890123456789}\n{"x": 1e22}\n')
    result = table.read_table({"n.jsonl": tmp_path / "n.jsonl"})
    assert result["x"].to_pylist() == ["9007199254740993.0", "0.12345678901234568", "1e+22"]


def test_tensors_of_whole_numbers_are_exact(tmp_path):
    (tmp_path / "n.csv").write_text("a,b\n9007199254740993,2.0\n")
    schema = Schema((Field("x", "int64[2]", "input"),))
    result = table.read_table({"n.csv": tmp_path / "n.csv"}, schema=schema, columns={"x": ["a", "b"]})
    assert result["x"].to_pylist() == [[9007199254740993, 2]]
