"""Empty, null and NaN are one idea, whatever the format: what is said of missing values holds for all three."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.readers import table
from farshift.loaders.readers._cells import find_missing
from farshift.splits.schema import Field, Schema
from own_source import pin_source

ROWS = 12
NAN = float("nan")
NO_NUMBER = {"csv": ("", "NaN"), "json": (None, NAN), "jsonl": (None, NAN), "parquet": (None, NAN)}


def columns(hole: object, word: object = "None") -> dict[str, list]:
    """A number that is missing in rows 3 and 7, a text that is a word for nothing, a code that stands for nothing."""
    numbers = [hole if row in (3, 7) else row + 0.5 for row in range(ROWS)]
    codes = [-999 if row == 5 else row for row in range(ROWS)]
    return {"x": numbers, "word": [word] * ROWS, "code": codes, "y": ["no", "yes"] * (ROWS // 2)}


def write(path: Path, values: dict[str, list]) -> None:
    records = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    if path.suffix == ".parquet":
        pq.write_table(pa.table(values), path, row_group_size=4)
    elif path.suffix == ".csv":
        lines = [",".join("" if cell is None else str(cell) for cell in row.values()) for row in records]
        path.write_text("\n".join([",".join(values), *lines]) + "\n")
    else:
        lines = [json.dumps(record) for record in records]
        path.write_text("\n".join(lines) if path.suffix == ".jsonl" else f"[{','.join(lines)}]")


def pinned(path: Path, **said):
    fields = {"inputs": ["x", "word", "code"], "labels": ["y"]} | said
    return pin_source(Data.model_validate({"files": [path.name], **fields}), path.stem, path.parent, path.parent)


@pytest.fixture
def home(tmp_path, cache) -> Path:
    return tmp_path


HOLES = [(form, hole) for form, holes in NO_NUMBER.items() for hole in holes]


@pytest.mark.parametrize(("form", "hole"), HOLES)
def test_a_missing_number_is_refused_dropped_or_filled_in_every_format(home, form, hole):
    write(home / f"asks.{form}", columns(hole))
    with pytest.raises(FarshiftError, match=rf"asks.{form}, (line|record|row) \d+: x is missing: set `if_missing`"):
        pinned(home / f"asks.{form}")
    # Whatever the format and the hole, the same rows are left.
    write(home / f"drops.{form}", columns(hole))
    dropped = pinned(home / f"drops.{form}", options={"if_missing": "drop"})
    assert sorted(dropped.table()["x"].to_pylist()) == [row + 0.5 for row in range(ROWS) if row not in (3, 7)]
    assert set(dropped.table()["word"].to_pylist()) == {"None"}  # a word, until `missing` says otherwise
    write(home / f"fills.{form}", columns(hole))
    filled = pinned(home / f"fills.{form}", options={"if_missing": {"x": -1.0, "code": 0}, "missing": ["-999"]})
    assert sorted(filled.table()["x"].to_pylist())[:2] == [-1.0, -1.0]
    assert sorted(filled.table()["code"].to_pylist())[:2] == [0, 0]


def test_the_row_of_a_parquet_file_is_counted_over_its_row_groups(home):
    write(home / "late.parquet", {name: values[4:] for name, values in columns(NAN).items()})
    with pytest.raises(FarshiftError, match="late.parquet, row 4: x is missing"):
        pinned(home / "late.parquet")


@pytest.mark.parametrize("form", list(NO_NUMBER))
def test_a_missing_text_is_filled_in_every_format_and_a_label_is_refused(home, form):
    write(home / f"texts.{form}", columns(1.5, word=None))
    filled = pinned(home / f"texts.{form}", options={"if_missing": {"word": "unknown"}}, types={"word": "string"})
    assert set(filled.table()["word"].to_pylist()) == {"unknown"}
    values = columns(1.5)
    values["y"][3] = None
    write(home / f"labels.{form}", values)
    with pytest.raises(FarshiftError, match=rf"labels.{form}, .*: y is missing: set `if_missing`"):
        pinned(home / f"labels.{form}", classes=["y"])


def test_rows_that_are_filled_are_looked_at_for_types_and_classes(home):
    values = columns(None)
    values["y"][3] = "maybe"
    values["code"][7] = 0.25
    write(home / "seen.jsonl", values)
    result = pinned(home / "seen.jsonl", options={"if_missing": {"x": 0.0}}, classes=["y"])
    assert result.class_names("y") == ["maybe", "no", "yes"]
    assert result.schema["code"].type == "float64"


def test_nan_is_a_word_among_words(home):
    values = columns(1.5)
    values["word"] = ["NaN", "Nina"] * (ROWS // 2)
    write(home / "names.csv", values)
    assert set(pinned(home / "names.csv").table()["word"].to_pylist()) == {"NaN", "Nina"}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("hole", [None, NAN])
def test_lists_with_a_missing_item_are_missing(home, form, hole):
    values = {"x": [[float(row), 0.5] for row in range(ROWS)], "y": [0, 1] * (ROWS // 2)}
    values["x"][9] = [hole, 0.5]
    write(home / f"asks.{form}", values)
    with pytest.raises(FarshiftError, match=rf"asks.{form}, (line|row) 10: x is missing: set `if_missing`"):
        pinned(home / f"asks.{form}", inputs=["x"])
    write(home / f"drops.{form}", values)
    result = pinned(home / f"drops.{form}", inputs=["x"], options={"if_missing": "drop"})
    assert result.schema["x"].type == "float32[2]" and result.table().num_rows == ROWS - 1
    with pytest.raises(FarshiftError, match="a missing one cannot be replaced by a value"):
        pinned(home / f"asks.{form}", inputs=["x"], options={"if_missing": {"x": 0.0}})


def test_a_label_of_several_numbers_may_have_unknown_ones(home):
    values = {"x": [float(row) for row in range(ROWS)], "y": [[NAN, float(row)] for row in range(ROWS)]}
    write(home / "tasks.parquet", values)
    assert pinned(home / "tasks.parquet", inputs=["x"]).table().num_rows == ROWS


def test_a_text_of_several_columns_is_missing_where_one_of_them_is(tmp_path):
    write(tmp_path / "t.parquet", {"a": ["1", "2"], "b": [0.5, NAN], "c": [1, 2]})
    schema = Schema((Field("both", "string", "input"), Field("c", "int64", "meta")))
    options = {"files": {"t.parquet": tmp_path / "t.parquet"}, "schema": schema}
    options["texts"] = {"both": "{a} {b}"}
    assert table.read_table(**options, if_missing="drop")["both"].to_pylist() == ["1 0.5"]
    with pytest.raises(FarshiftError, match="row 2: both is missing: set `if_missing`"):
        table.read_table(**options)


def test_nested_and_sliced_lists_are_looked_at_to_their_items():
    nested = pa.chunked_array(
        [pa.array([[[1.0]], [[NAN]], None, [[2.0]], [None], [[None]]]).slice(1), pa.array([[[3.0]], [[NAN]]])]
    )
    assert find_missing(nested).tolist() == [True, True, False, True, True, False, True]
    assert find_missing(nested, nan=False).tolist() == [False, True, False, True, True, False, False]


@pytest.mark.parametrize(
    ("values", "texts", "missing"),
    [
        ([1, -999, 3], ["-999", "n/a", "1.5"], [False, True, False]),
        ([1.0, -999.0, 1.5], ["-999", "1.5"], [False, True, True]),
        ([True, False, True], ["false"], [False, True, False]),
        (["a", "-999", "A"], ["-999", "a"], [True, True, False]),
    ],
)
def test_what_stands_for_a_missing_value_is_named_as_it_is_written(values, texts, missing):
    assert find_missing(pa.chunked_array([pa.array(values)]), texts).tolist() == missing
