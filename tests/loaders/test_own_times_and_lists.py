"""Times and lists of numbers in data of one's own: typed once, digested alike from every format and zone."""

from __future__ import annotations

import csv
import datetime as dt
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift import load, stream
from farshift.core.errors import BadDefinition, Unavailable
from farshift.loaders.acquire.own_data import Data
from farshift.loaders.export import webdataset
from farshift.loaders.freezing.freeze import freeze
from farshift.splits.rules.time import before
from own_source import pin_source

BEGIN = dt.datetime(2023, 1, 1, 9, 30, tzinfo=dt.UTC)
TIMES = [BEGIN + dt.timedelta(days=9 * row, microseconds=row) for row in range(80)]
UTC = pa.timestamp("us", "UTC")


@pytest.fixture
def home(tmp_path, cache) -> Path:
    return tmp_path


def asked(file: str, **changes) -> Data:
    return Data.model_validate({"files": [file], "inputs": ["x"], "labels": ["y"], "meta": ["when"]} | changes)


def write_csv(path: Path, times: list[str]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("x", "y", "when"), *((row, row % 2, time) for row, time in enumerate(times))])


def write_parquet(path: Path, times: pa.Array) -> None:
    rows = len(times)
    pq.write_table(pa.table({"x": range(rows), "y": [row % 2 for row in range(rows)], "when": times}), path)


def pinned(home: Path, file: str, **changes):
    return pin_source(asked(file, **changes), Path(file).name.replace(".", "_"), home, home)


EAST = dt.timezone(dt.timedelta(hours=5, minutes=30))


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
    built = [pinned(home, path.name) for path in sorted(home.iterdir()) if path.is_file()]
    assert len(built) == 7
    assert {source.schema["when"].type for source in built} == {"timestamp"}
    assert len({source.definition.digest for source in built}) == 1
    stored = {row["x"]: row["when"] for row in built[0].table().to_pylist()}
    assert stored[5] == TIMES[5].replace(tzinfo=None)


def test_the_zone_of_the_machine_plays_no_part(home):
    write_csv(home / "naive.csv", [time.replace(tzinfo=None).isoformat() for time in TIMES])
    code = (
        "import pathlib, sys\nfrom farshift.loaders.readers.table import read_table as read\n"
        "from farshift.splits.schema import Field, Schema\nfrom farshift.splits.rows import compute_row_digests, compute_set_digest\n"
        "schema = Schema((Field('x', 'int64', 'input'), Field('when', 'timestamp', 'meta')))\n"
        "print(compute_set_digest(compute_row_digests(schema.conform(read({'a.csv': pathlib.Path(sys.argv[1])}, schema=schema), ''),"
        "schema)))"
    )
    result = {
        subprocess.run(
            [sys.executable, "-c", code, str(home / "naive.csv")],
            env=os.environ | {"TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for zone in ("UTC", "America/New_York")
    }
    assert len(result) == 1


def test_dates_are_the_beginning_of_their_day(home):
    days = [time.date() for time in TIMES]
    write_csv(home / "days.csv", [day.isoformat() for day in days])
    write_parquet(home / "days.parquet", pa.array(days, pa.date32()))
    built = [pinned(home, name) for name in ("days.csv", "days.parquet")]
    assert len({source.definition.digest for source in built}) == 1
    assert built[0].table()["when"].type == pa.timestamp("us")


@pytest.mark.parametrize("odd", ["2023-06-31", "2023-01-01T09:30:00Z", "June", "2023-01-01T09:30:00.1234567"])
def test_texts_of_which_one_is_no_time_or_has_a_zone_beside_none_stay_text(home, odd):
    write_csv(home / "odd.csv", ["2023-01-01", odd])
    assert pinned(home, "odd.csv").schema["when"].type == "string"


def test_what_is_no_time_is_named_with_its_line(home):
    write_csv(home / "odd.csv", ["2023-01-01", "2023-06-31"])
    with pytest.raises(Unavailable, match=r"odd\.csv, line 3: when is '2023-06-31', not a time such as"):
        pinned(home, "odd.csv", types={"when": "timestamp"})
    write_csv(home / "mixed.csv", ["2023-01-01", "2023-01-01T09:30Z"])
    with pytest.raises(BadDefinition, match="'when': times have a zone in some rows and none in others"):
        pinned(home, "mixed.csv", types={"when": "timestamp"})


@pytest.mark.parametrize("role", ["inputs", "labels"])
def test_a_time_is_no_input_and_no_label_and_says_what_to_do(home, role):
    write_parquet(home / "utc.parquet", pa.array(TIMES, UTC))
    changes = {"inputs": ["x"], "labels": ["y"], "meta": []} | {role: ["when"]}
    with pytest.raises(BadDefinition, match=r"'when' is a timestamp, which cannot be of role .*: make it meta .* text"):
        pinned(home, "utc.parquet", **changes)
    stored = pinned(home, "utc.parquet", **changes, types={"when": "string"})
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
    freeze(home / "draft.toml", home / "splits" / "manifests")
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


def test_a_part_with_times_is_exported_and_streamed_as_it_is(sales, tmp_path):
    part = load("sales/later", part="train")
    shards = webdataset.write(part, tmp_path / "shards")
    own = dict(zip(*part.numpy(["row_id", "when"]).values(), strict=True))
    streamed = {}
    for batch in stream("sales/later", "train", shards).batches(16):
        streamed |= dict(zip(batch["row_id"], batch["when"], strict=True))
    assert streamed == own
    assert part.arrow()["when"].type == pa.timestamp("us")
    assert part[0]["when"] is not None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"until": "soon"}, "until = 'soon': write a time as 2024-05-31"),
        ({"field": "x"}, "field 'x' is int64, and the rule needs a timestamp"),
        ({"period": "week"}, "period = 'week': use day, month, year"),
        ({"since": "2025-01-01"}, "rows from 2025-01-01T00:00:00.000000 .since. on train"),
        ({"until": "2022-01-01", "since": "2021-01-01"}, "no row has when from 2021"),
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


def lists(path: Path, values: pa.Array) -> None:
    pq.write_table(pa.table({"x": values, "y": [row % 2 for row in range(len(values))]}), path)


def test_lists_have_one_digest_from_every_format(home):
    lists(home / "n.parquet", pa.array(NESTED))
    (home / "n.jsonl").write_text(
        "".join(json.dumps({"x": value, "y": row % 2}) + "\n" for row, value in enumerate(NESTED))
    )
    with (home / "n.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("x", "y"), *((json.dumps(value), row % 2) for row, value in enumerate(NESTED))])
    built = [pinned(home, name, meta=[]) for name in ("n.parquet", "n.jsonl", "n.csv")]
    assert [source.schema["x"].type for source in built] == ["float32[2,3]"] * 3
    assert len({source.definition.digest for source in built}) == 1


@pytest.mark.parametrize(
    ("values", "kind"),
    [([[1, 2], [3, 4]], "int64[2]"), ([[True, False]] * 2, "uint8[2]"), ([[1.5], [2]], "float32[1]")],
)
def test_whole_numbers_truth_values_and_others_have_their_items(home, values, kind):
    lists(home / "n.parquet", pa.array(values))
    assert pinned(home, "n.parquet", meta=[]).schema["x"].type == kind
