"""A CSV and a data set of the Hub: each is a benchmark in ten lines."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from encoded_files import picture
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark
from farshift.loaders.freezing.freeze import freeze
from farshift.splits.catalogue import find_manifest
from hub_rows import send_clients_to
from hub_server import REPOSITORY, serving
from own_benchmark import write_benchmark

CSV = """
name = "reviews/long"
version = 1
kind = "length"
title = "Stars of long reviews"
label = "stars"
rule = "length/threshold"
parameters = { field = "text", at_most = 10 }
severity = { name = "length", unit = "words" }
data = { files = ["reviews.csv"], inputs = ["text"], labels = ["stars"] }
benchmark = {}
"""


HUB = f"""
name = "digits/far"
version = 1
kind = "domain"
title = "Tested in another town"
label = "label"
rule = "domain/hold_out"
parameters = {{ field = "town", ood = ["far"] }}
data = {{ hub = "{REPOSITORY}", files = ["data/*.parquet"], inputs = ["image"], labels = ["label"], meta = ["town"] }}
benchmark = {{}}
"""

MODEL = """
class First:
    def predict(self, batch):
        return [0] * len(next(iter(batch.values())))
"""


@pytest.fixture
def home(tmp_path, cache, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path))
    with (tmp_path / "reviews.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "stars"), *((f"{'w ' * (row % 20)}{row}", row % 3) for row in range(200))])
    (tmp_path / "first.py").write_text(MODEL)
    return tmp_path


def built(command, home: Path, draft: str) -> dict:
    assert len(draft.strip().splitlines()) <= 10
    (home / "draft.toml").write_text(draft)
    done = command("splits", "build", "draft.toml", "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def evaluated(command, name: str) -> str:
    done = command("evaluate", "first.py:First", "--on", name, "--budget", "quick", "--seeds", "1", "--out", "runs/it")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_csv_is_a_benchmark(command, home):
    built(command, home, CSV)
    assert "First on reviews/long (accuracy, length)" in evaluated(command, "reviews/long")
    benchmark = find_benchmark("reviews/long")
    assert (benchmark.task.classes, benchmark.task.inputs, benchmark.task.names) == (3, ("text",), ())
    assert len(benchmark.part("id_test").row_ids) > 0
    assert len(benchmark.part("id_val").row_ids) > 0
    assert benchmark.definition.protocol.selection == ["last", "id_val"]


@pytest.mark.parametrize("unknown", [0, -1])
def test_a_tensor_of_ones_and_zeros_is_a_multilabel_task(command, home, unknown):
    rows = [{"text": f"{'w ' * (row % 20)}{row}", "tags": [row % 2, 1, unknown]} for row in range(200)]
    (home / "reviews.jsonl").write_text("\n".join(map(json.dumps, rows)))
    draft = CSV.replace("stars", "tags").replace(".csv", ".jsonl").replace("{}", '{ task = { type = "multilabel" } }')
    if unknown:
        (home / "draft.toml").write_text(draft)
        assert "'tags' has -1: those of a multilabel task" in command("splits", "build", "draft.toml").stderr
        return
    built(command, home, draft)
    benchmark = find_benchmark("reviews/long")
    assert (benchmark.task.classes, benchmark.metrics[0].name) == (3, "multilabel_average_precision")


def list_texts(benchmark, part: str) -> list[str]:
    rows = benchmark.part(part)
    return [rows[index]["text"] for index in range(len(rows))]


def test_held_out_rows_whose_inputs_are_trained_on_are_announced(command, home):
    with (home / "reviews.csv").open("w", newline="") as file:
        rows = (("w " * (row % 40) + "end", row % 3) for row in range(400))
        csv.writer(file).writerows([("text", "stars"), *rows])
    (home / "draft.toml").write_text(CSV)
    done = command("splits", "build", "draft.toml")
    benchmark = find_benchmark("reviews/long")
    trained = set(list_texts(benchmark, "train"))
    for name in ("id_test", "id_val"):
        held_out = list_texts(benchmark, name)
        shared = sum(text in trained for text in held_out)
        assert shared > 0
        assert (
            f"{shared} of the {len(held_out)} rows held out as {name} have inputs that rows of train have too"
            in done.stderr
        )


def test_a_data_set_of_the_hub_is_a_benchmark(command, home, monkeypatch):
    rows = [
        {"image": {"bytes": picture(row, "PNG", 8), "path": f"{row}.png"}, "label": row % 4, "town": "nf"[row % 2]}
        for row in range(80)
    ]
    towns = {"n": "near", "f": "far"}
    table = pa.Table.from_pylist([row | {"town": towns[row["town"]]} for row in rows])
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    with serving() as hub:
        send_clients_to(hub, monkeypatch, home / "hf")
        hub.commit({"data/train-0.parquet": sink.getvalue().to_pybytes()})
        # In this process: the Hub's client of another would not know the server.
        (home / "draft.toml").write_text(HUB)
        assert len(HUB.strip().splitlines()) <= 10
        manifest, _ = freeze(home / "draft.toml", home / "splits" / "manifests")
        write_benchmark(manifest, {}, home)
        assert "First on digits/far (accuracy, domain)" in evaluated(command, "digits/far")
    assert find_benchmark("digits/far").task.classes == 4


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('benchmark = { metrics = ["macro_f1", "accuracy"], protocol = { seeds = 2 } }', ["macro_f1", "accuracy"]),
        ('benchmark = { task = { type = "regression" }, title = "Other" }', ["rmse"]),
    ],
)
def test_a_draft_may_say_otherwise(command, home, line, expected):
    built(command, home, CSV.replace("benchmark = {}", line))
    benchmark = find_benchmark("reviews/long")
    assert [metric.name for metric in benchmark.metrics] == expected
    assert benchmark.seeds("full") == (2 if "protocol" in line else 5)


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ({"metrics": ["exactness"]}, "no metric named 'exactness'"),
        ({"metrics": "accuracy"}, r"benchmark metrics = 'accuracy': write a list, \[ .. \]"),
        ({"views": {"id": {"part": "id_test"}}}, "benchmark: views must include `id` and `ood`|benchmark .*views"),
        ({"tasc": {}}, "benchmark tasc: no such key: did you mean task"),
        ({"protocol": 3}, "benchmark protocol = 3: write a table, { .. }"),
    ],
)
def test_what_is_no_benchmark_is_refused(command, home, said, complaint):
    built(command, home, CSV.replace("benchmark = {}", ""))
    with pytest.raises(FarshiftError, match=complaint):
        write_benchmark(find_manifest("reviews/long"), said, home)
    assert not (home / "benchmarks").exists()
