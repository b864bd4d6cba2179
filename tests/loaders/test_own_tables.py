"""Tables of one's own: the same rows, types and digests from every format, nothing rounded or missing without a word."""

from __future__ import annotations

import bz2
import csv
import datetime as dt
import gzip
import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import FarshiftError, load
from farshift.core.errors import BadData, BadDefinition, Unavailable
from farshift.core.progress import report_to
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.acquire.type_inference import TypeInference
from farshift.loaders.freezing.freeze import freeze
from farshift.loaders.readers import table
from farshift.loaders.readers._cells import find_missing
from farshift.splits.rules.time import before
from farshift.splits.schema import Field, Schema
from own_source import pin_source
from support import Heard

QUOTED = [(f'said "{row}"\nand went, on', f"{row}.5", "ab"[row % 2]) for row in range(40)]


def make_table(cut: str = ",", head: str = "text,price,kind") -> str:
    quoted = [(f'"{text.replace(chr(34), 2 * chr(34))}"', price, kind) for text, price, kind in QUOTED]
    return "\n".join([head.replace(",", cut), *(cut.join(row) for row in quoted)]) + "\n"


def simple(prices: list[str]) -> str:
    return "text,price,kind\n" + "".join(f"a {row},{price},{'ab'[row % 2]}\n" for row, price in enumerate(prices))


def pin_bytes(home: Path, name: str, content: bytes, told: Heard | None = None, **options):
    (home / name).write_bytes(content)
    output = {"files": [name], "inputs": ["text", "price"], "labels": ["kind"], "options": options}
    with report_to(told if told is not None else Heard()):
        return pin_source(Data.model_validate(output), name.replace(".", "_"), home, home)


@pytest.fixture
def home(tmp_path, cache) -> Path:
    return tmp_path


def test_rows_are_the_same_however_they_are_written(home):
    plain = make_table()
    commas = make_table(";").replace(".5;", ",5;")
    result = [
        pin_bytes(home, "plain.csv", plain.encode()),
        pin_bytes(home, "bom.csv", ("\ufeff" + plain).encode()),
        pin_bytes(home, "blank.csv", f"{plain}\n\n".encode()),
        pin_bytes(home, "small.csv.gz", gzip.compress(plain.encode())),
        pin_bytes(home, "small.tsv.bz2", bz2.compress(make_table("\t").encode())),
        pin_bytes(home, "semicolons.csv", make_table(";").encode(), separator=";"),
        pin_bytes(home, "commas.csv", commas.encode(), separator=";", decimal=","),
        pin_bytes(home, "wide.csv", plain.encode("utf-16"), encoding="utf-16"),
        pin_bytes(home, "heads.csv", make_table(head="text, price ,kind").encode()),
    ]
    assert {source.schema["price"].type for source in result} == {"float64"}
    assert len({source.definition.digest for source in result}) == 1
    texts = result[0].table()["text"].to_pylist()
    assert sorted(texts) == sorted(text for text, _, _ in QUOTED)


@pytest.mark.parametrize(
    ("content", "options", "complaint"),
    [
        (
            make_table(";").encode(),
            {},
            r'has no column .text. .*: set the separator of its cells with options = \{ separator = ";" \}',
        ),
        (make_table("\t").encode(), {}, r'with options = \{ separator = "\\t" \}'),
        (make_table().encode("utf-16"), {}, r'UTF-16 text: set options = \{ encoding = "utf-16" \}'),
        ("text,price,kind\nä,1,a\n".encode("latin-1"), {}, r"line 2: not utf-8 text: set the file's encoding"),
        (b'text,price,kind\n"open,1,a\n', {}, "an unmatched quote"),
        (simple(["1", ""]).encode(), {}, "line 3: price is missing: set `if_missing`"),
        (make_table(head="text,price,kind,kind").encode(), {}, "odd.csv has several columns named 'kind': rename them"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_to_do(home, content, options, complaint):
    with pytest.raises((BadData, BadDefinition, Unavailable), match=complaint):
        pin_bytes(home, "odd.csv", content, **options)


def test_numbers_with_a_decimal_comma_or_marks_of_what_is_missing_are_told(home):
    output = Heard()
    prices = [f"{row}.5" for row in range(40)]
    quoted = [f'"{price.replace(".", ",")}"' for price in prices]
    assert pin_bytes(home, "commas.csv", simple(quoted).encode(), output).schema["price"].type == "string"
    advice = "set `missing` or `decimal` in options, or `types`"
    assert output.lines[0].startswith("[data] price is text: most of its values are numbers, but not '0,5', ")
    assert output.lines[0].endswith(advice)
    assert pin_bytes(home, "read.csv", simple(quoted).encode(), decimal=",").schema["price"].type == "float64"
    output = Heard()
    holes = simple(["NA", *prices[1:]]).encode()
    assert pin_bytes(home, "holes.csv", holes, output).schema["price"].type == "string"
    assert output.lines[0] == f"[data] price is text: most of its values are numbers, but not 'NA': {advice}"
    filled = pin_bytes(home, "filled.csv", holes, missing=["NA"], if_missing="drop")
    assert (filled.schema["price"].type, filled.table().num_rows) == ("float64", 39)


COUNT = 30


FITS, LONG = [2**63 - 1 - row for row in range(COUNT)], [10**19 + row for row in range(COUNT)]


def pin_columns(path: Path, columns: dict[str, list], **said):
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
    columns = {"user": FITS, "tweet": LONG, "site": LONG, "y": [row % 2 for row in range(COUNT)]}
    built, output = pin_columns(
        tmp_path / f"ids.{form}", columns, inputs=["user", "tweet"], labels=["y"], meta=["site"]
    )
    types = {field.name: field.type for field in built.schema.fields}
    assert types == {"user": "int64", "tweet": "string", "site": "string", "y": "int64"}
    rows = built.table()
    assert sorted(rows["user"].to_pylist()) == sorted(FITS)
    assert sorted(rows["site"].to_pylist()) == sorted(map(str, LONG))
    assert f"[data] tweet is text: numbers such as '{LONG[0]}' would be rounded: types = {{ tweet = " in output


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([2**53 + 1, 9 * 10**29, *range(COUNT - 2)], f"numbers such as '{9 * 10**29}' would be rounded"),
        (
            [f"0{row + 20}" for row in range(COUNT)],
            "numbers such as '020' begin with a zero: types = { when = \"int64\" }",
        ),
        (["unknown", *["2024-01-31"] * (COUNT - 1)], "most of its values are times, but not 'unknown': correct it"),
        (
            ["13/31/2024", "2024-06-31", *[f"2024-01-{row + 1:02}" for row in range(COUNT - 2)]],
            "most of its values are times, but not '13/31/2024', '2024-06-31': correct it or set `missing` in options",
        ),
        (["2024-01-31T10:00Z", *["2024-01-31"] * (COUNT - 1)], "its times have a zone in some rows and none in others"),
        (["2024-01-31"] * COUNT, ""),
    ],
)
def test_a_column_that_a_few_values_turn_into_text_is_told_with_those_values(tmp_path, cache, values, message):
    columns = {"text": list("ab") * (COUNT // 2), "when": values, "y": [row % 2 for row in range(COUNT)]}
    _, output = pin_columns(tmp_path / "cells.csv", columns, inputs=["text"], labels=["y"], meta=["when"])
    assert (f"[data] when is text: {message}" in output) if message else ("when is text" not in output)


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


ROWS = 12


NAN = float("nan")


NO_NUMBER = {"csv": ("", "NaN"), "json": (None, NAN), "jsonl": (None, NAN), "parquet": (None, NAN)}


def columns(hole: object, word: object = "None") -> dict[str, list]:
    """A number that is missing in rows 3 and 7, a text that is a word for nothing, a code that stands for nothing."""
    numbers = [hole if row in (3, 7) else row + 0.5 for row in range(ROWS)]
    codes = [-999 if row == 5 else row for row in range(ROWS)]
    return {"x": numbers, "word": [word] * ROWS, "code": codes, "y": ["no", "yes"] * (ROWS // 2)}


def write_values(path: Path, values: dict[str, list]) -> None:
    records = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    if path.suffix == ".parquet":
        pq.write_table(pa.table(values), path, row_group_size=4)
    elif path.suffix == ".csv":
        lines = [",".join("" if cell is None else str(cell) for cell in row.values()) for row in records]
        path.write_text("\n".join([",".join(values), *lines]) + "\n")
    else:
        lines = [json.dumps(record) for record in records]
        path.write_text("\n".join(lines) if path.suffix == ".jsonl" else f"[{','.join(lines)}]")


def pin_file(path: Path, **said):
    fields = {"inputs": ["x", "word", "code"], "labels": ["y"]} | said
    return pin_source(Data.model_validate({"files": [path.name], **fields}), path.stem, path.parent, path.parent)


HOLES = [(form, hole) for form, holes in NO_NUMBER.items() for hole in holes]


@pytest.mark.parametrize(("form", "hole"), HOLES)
def test_a_missing_number_is_refused_dropped_or_filled_in_every_format(home, form, hole):
    write_values(home / f"asks.{form}", columns(hole))
    with pytest.raises(FarshiftError, match=rf"asks.{form}, (line|record|row) \d+: x is missing: set `if_missing`"):
        pin_file(home / f"asks.{form}")
    # Whatever the format and the hole, the same rows are left.
    write_values(home / f"drops.{form}", columns(hole))
    dropped = pin_file(home / f"drops.{form}", options={"if_missing": "drop"})
    assert sorted(dropped.table()["x"].to_pylist()) == [row + 0.5 for row in range(ROWS) if row not in (3, 7)]
    assert set(dropped.table()["word"].to_pylist()) == {"None"}  # a word, until `missing` says otherwise
    write_values(home / f"fills.{form}", columns(hole))
    filled = pin_file(home / f"fills.{form}", options={"if_missing": {"x": -1.0, "code": 0}, "missing": ["-999"]})
    assert sorted(filled.table()["x"].to_pylist())[:2] == [-1.0, -1.0]
    assert sorted(filled.table()["code"].to_pylist())[:2] == [0, 0]


def test_the_row_of_a_parquet_file_is_counted_over_its_row_groups(home):
    write_values(home / "late.parquet", {name: values[4:] for name, values in columns(NAN).items()})
    with pytest.raises(FarshiftError, match="late.parquet, row 4: x is missing"):
        pin_file(home / "late.parquet")


@pytest.mark.parametrize("form", list(NO_NUMBER))
def test_a_missing_text_is_filled_in_every_format_and_a_label_is_refused(home, form):
    write_values(home / f"texts.{form}", columns(1.5, word=None))
    filled = pin_file(home / f"texts.{form}", options={"if_missing": {"word": "unknown"}}, types={"word": "string"})
    assert set(filled.table()["word"].to_pylist()) == {"unknown"}
    values = columns(1.5)
    values["y"][3] = None
    write_values(home / f"labels.{form}", values)
    with pytest.raises(FarshiftError, match=rf"labels.{form}, .*: y is missing: set `if_missing`"):
        pin_file(home / f"labels.{form}", classes=["y"])


def test_rows_that_are_filled_are_looked_at_for_types_and_classes(home):
    values = columns(None)
    values["y"][3] = "maybe"
    values["code"][7] = 0.25
    write_values(home / "seen.jsonl", values)
    result = pin_file(home / "seen.jsonl", options={"if_missing": {"x": 0.0}}, classes=["y"])
    assert result.class_names("y") == ["maybe", "no", "yes"]
    assert result.schema["code"].type == "float64"


def test_nan_is_a_word_among_words(home):
    values = columns(1.5)
    values["word"] = ["NaN", "Nina"] * (ROWS // 2)
    write_values(home / "names.csv", values)
    assert set(pin_file(home / "names.csv").table()["word"].to_pylist()) == {"NaN", "Nina"}


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
@pytest.mark.parametrize("hole", [None, NAN])
def test_lists_with_a_missing_item_are_missing(home, form, hole):
    values = {"x": [[float(row), 0.5] for row in range(ROWS)], "y": [0, 1] * (ROWS // 2)}
    values["x"][9] = [hole, 0.5]
    write_values(home / f"asks.{form}", values)
    with pytest.raises(FarshiftError, match=rf"asks.{form}, (line|row) 10: x is missing: set `if_missing`"):
        pin_file(home / f"asks.{form}", inputs=["x"])
    write_values(home / f"drops.{form}", values)
    result = pin_file(home / f"drops.{form}", inputs=["x"], options={"if_missing": "drop"})
    assert result.schema["x"].type == "float32[2]" and result.table().num_rows == ROWS - 1
    with pytest.raises(FarshiftError, match="a missing one cannot be replaced by a value"):
        pin_file(home / f"asks.{form}", inputs=["x"], options={"if_missing": {"x": 0.0}})


def test_a_label_of_several_numbers_may_have_unknown_ones(home):
    values = {"x": [float(row) for row in range(ROWS)], "y": [[NAN, float(row)] for row in range(ROWS)]}
    write_values(home / "tasks.parquet", values)
    assert pin_file(home / "tasks.parquet", inputs=["x"]).table().num_rows == ROWS


def test_a_text_of_several_columns_is_missing_where_one_of_them_is(tmp_path):
    write_values(tmp_path / "t.parquet", {"a": ["1", "2"], "b": [0.5, NAN], "c": [1, 2]})
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


BEGIN = dt.datetime(2023, 1, 1, 9, 30, tzinfo=dt.UTC)


TIMES = [BEGIN + dt.timedelta(days=9 * row, microseconds=row) for row in range(80)]


UTC = pa.timestamp("us", "UTC")


def asked(file: str, **changes) -> Data:
    return Data.model_validate({"files": [file], "inputs": ["x"], "labels": ["y"], "meta": ["when"]} | changes)


def write_csv(path: Path, times: list[str]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("x", "y", "when"), *((row, row % 2, time) for row, time in enumerate(times))])


def write_parquet(path: Path, times: pa.Array) -> None:
    rows = len(times)
    pq.write_table(pa.table({"x": range(rows), "y": [row % 2 for row in range(rows)], "when": times}), path)


def pin_times(home: Path, file: str, **changes):
    return pin_source(asked(file, **changes), Path(file).name.replace(".", "_"), home, home)


EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))


@pytest.fixture
def _in_new_york(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_in_new_york")
def test_one_moment_has_one_digest_whatever_zone_unit_and_format_it_is_written_in(home):
    write_csv(home / "z.csv", [time.isoformat().replace("+00:00", "Z") for time in TIMES])
    write_csv(home / "east.csv", [time.astimezone(EAST).isoformat(" ") for time in TIMES])
    write_csv(home / "naive.csv", [time.replace(tzinfo=None).isoformat() for time in TIMES])
    write_parquet(home / "utc.parquet", pa.array(TIMES, UTC))
    write_parquet(home / "berlin.parquet", pa.array(TIMES, pa.timestamp("ns", "Europe/Berlin")))
    write_parquet(home / "naive.parquet", pa.array(TIMES, UTC).cast(pa.timestamp("us")))
    (home / "z.jsonl").write_text(
        "".join(json.dumps({"x": n, "y": n % 2, "when": time.isoformat()}) + "\n" for n, time in enumerate(TIMES))
    )
    built = [pin_times(home, path.name) for path in sorted(home.iterdir()) if path.is_file()]
    assert len(built) == 7
    assert {source.schema["when"].type for source in built} == {"timestamp"}
    assert len({source.definition.digest for source in built}) == 1
    stored = {row["x"]: row["when"] for row in built[0].table().to_pylist()}
    assert stored[5] == TIMES[5].replace(tzinfo=None)


def test_dates_are_the_beginning_of_their_day(home):
    days = [time.date() for time in TIMES]
    write_csv(home / "days.csv", [day.isoformat() for day in days])
    write_parquet(home / "days.parquet", pa.array(days, pa.date32()))
    built = [pin_times(home, name) for name in ("days.csv", "days.parquet")]
    assert len({source.definition.digest for source in built}) == 1
    assert built[0].table()["when"].type == pa.timestamp("us")


@pytest.mark.parametrize("odd", ["2023-06-31", "2023-01-01T09:30:00Z", "June", "2023-01-01T09:30:00.1234567"])
def test_texts_of_which_one_is_no_time_or_has_a_zone_beside_none_stay_text(home, odd):
    write_csv(home / "odd.csv", ["2023-01-01", odd])
    assert pin_times(home, "odd.csv").schema["when"].type == "string"


def test_what_is_no_time_is_named_with_its_line(home):
    write_csv(home / "odd.csv", ["2023-01-01", "2023-06-31"])
    with pytest.raises(Unavailable, match=r"odd\.csv, line 3: when is '2023-06-31', not a time such as"):
        pin_times(home, "odd.csv", types={"when": "timestamp"})
    write_csv(home / "mixed.csv", ["2023-01-01", "2023-01-01T09:30Z"])
    with pytest.raises(BadDefinition, match="'when': times have a zone in some rows and none in others"):
        pin_times(home, "mixed.csv", types={"when": "timestamp"})


@pytest.mark.parametrize("role", ["inputs", "labels"])
def test_a_time_is_no_input_and_no_label_and_says_what_to_do(home, role):
    write_parquet(home / "utc.parquet", pa.array(TIMES, UTC))
    changes = {"inputs": ["x"], "labels": ["y"], "meta": []} | {role: ["when"]}
    with pytest.raises(BadDefinition, match=r"'when' is a timestamp, which cannot be of role .*: make it meta .* text"):
        pin_times(home, "utc.parquet", **changes)
    stored = pin_times(home, "utc.parquet", **changes, types={"when": "string"})
    assert stored.schema["when"].type == "string"


DRAFT = """
name = "sales/later"
version = 1
kind = "domain"
title = "Sales of later months"
label = "y"
rule = "time/before"
parameters = { field = "when", until = "2024-01-01", since = "2023-02-01", id_test = 0.2, seed = "sales/later@1" }
severity = { name = "days", unit = "days" }
data = { files = ["sales.csv"], inputs = ["x"], labels = ["y"], meta = ["when"] }
"""


@pytest.fixture
def sales(home, monkeypatch) -> Path:
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    write_csv(home / "sales.csv", [time.isoformat() for time in TIMES])
    (home / "draft.toml").write_text(DRAFT)
    output = Heard()
    with report_to(output):
        freeze(home / "draft.toml", home / "splits" / "manifests")
    early = sum(time.replace(tzinfo=None) < dt.datetime(2023, 2, 1) for time in TIMES)
    assert f"sales/later: the rule assigns {early} rows of {len(TIMES)} to no part" in output.lines
    return home


def test_rows_are_held_out_by_a_moment(sales):
    until, since = np.datetime64("2024-01-01"), np.datetime64("2023-02-01")
    time = {name: load("sales/later", part=name).numpy()["when"] for name in ("train", "id_test", "ood_test")}
    assert time["train"].dtype == "<M8[us]"
    assert time["train"].max() < until <= time["ood_test"].min()
    assert min(time["train"].min(), time["id_test"].min()) >= since
    months = {name: set(values.astype("M8[M]").tolist()) for name, values in time.items()}
    assert not months["train"] & months["id_test"]
    stored = [stamp.replace(tzinfo=None) for stamp in TIMES]
    assert len(time["ood_test"]) == sum(stamp >= dt.datetime(2024, 1, 1) for stamp in stored)
    severity = load("sales/later", part="ood_test").numpy()["severity"]
    assert (severity == (time["ood_test"] - until) // np.timedelta64(1, "D") + 1).all()


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"until": "soon"}, "until = 'soon': write a time as 2024-05-31"),
        ({"field": "x"}, "field 'x' is int64, and the rule needs a timestamp: write times as 2024-05-31"),
        ({"period": "week"}, "period = 'week': use day, month, year"),
        ({"since": "2025-01-01"}, "rows from 2025-01-01T00:00:00.000000 .since. on train"),
        ({"until": "2022-01-01", "since": "2021-01-01"}, "no row has when from 2021"),
        ({"until": "2022-01-01"}, "no row has when before 2022-01-01"),
        ({"id_test": 1.0}, "below 1 together"),
    ],
)
def test_a_moment_that_cannot_be_is_refused(changes, complaint):
    table = pa.table(
        {
            "row_id": pa.array(range(80), pa.uint64()),
            "x": range(80),
            "when": pa.array(TIMES, UTC).cast(pa.timestamp("us")),
        }
    )
    with pytest.raises(BadDefinition, match=complaint):
        before(table, **({"field": "when", "until": "2024-01-01"} | changes))


def test_a_period_that_a_moment_cuts_is_two_groups():
    times = pa.array([dt.datetime(2024, 1, day) for day in (1, 10, 20, 30)], pa.timestamp("us"))
    result = before(
        pa.table({"row_id": pa.array(range(4), pa.uint64()), "when": times}),
        field="when", until="2024-01-15T01:00+01:00", ood_val_until="2024-01-25",
    )  # fmt: skip
    assert result.part.tolist() == ["train", "train", "ood_val", "ood_test"]
    assert result.group.tolist() == ["2024-01"] * 2 + ["2024-01 from 2024-01-15T00:00:00.000000"] * 2
    assert result.severity.tolist() == [0, 0, 6, 16]


NESTED = [[[float(row), 0.5, 1.0], [2.0, 3.0, 4.0]] for row in range(30)]


def write_lists(path: Path, values: pa.Array) -> None:
    pq.write_table(pa.table({"x": values, "y": [row % 2 for row in range(len(values))]}), path)


def test_lists_have_one_digest_from_every_format(home):
    write_lists(home / "n.parquet", pa.array(NESTED))
    (home / "n.jsonl").write_text(
        "".join(json.dumps({"x": value, "y": row % 2}) + "\n" for row, value in enumerate(NESTED))
    )
    with (home / "n.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("x", "y"), *((json.dumps(value), row % 2) for row, value in enumerate(NESTED))])
    built = [pin_times(home, name, meta=[]) for name in ("n.parquet", "n.jsonl", "n.csv")]
    assert [source.schema["x"].type for source in built] == ["float32[2,3]"] * 3
    assert len({source.definition.digest for source in built}) == 1
