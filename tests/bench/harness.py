"""What does the harness cost? Beside the same model asked in a plain loop, in the same run.

make bench-harness

1. Overhead: a model that takes 1 ms for a batch of 256, asked by the harness and by a loop over the same batches.
   Limit: 3 %. Pairs, images and texts; interleaved repetitions, medians.
2. A million predictions written into a run folder and scored: at most 3 s and 500 MB of memory on top of the process.
"""

from __future__ import annotations

import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from farshift import Answers
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.harness.predictor import Predictor
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.benchmarks.runs.run_folder import Job, RunFolder, Shard
from farshift.benchmarks.scoring.answered_rows import AnsweredRows
from farshift.benchmarks.statistics.interval import estimate_mean

BATCH = 256
BATCHES = 1000
ROUNDS = 5
ROWS = 1_000_000


class OneMillisecond:
    """Spins for a millisecond, as a model that computes would, and answers."""

    def predict(self, batch: dict[str, np.ndarray]) -> np.ndarray:
        until = time.perf_counter() + 0.001
        count = len(next(iter(batch.values())))
        while time.perf_counter() < until:
            pass
        return np.zeros(count, np.int64)


def columns() -> dict[str, dict[str, object]]:
    import pyarrow as pa

    rows = BATCH * BATCHES
    draw = np.random.default_rng(0)
    few = draw.integers(0, 256, (5000, 32, 32, 3), dtype=np.uint8)
    return {
        "two numbers": {"a": draw.integers(0, 97, rows), "b": draw.integers(0, 97, rows)},
        "8x8 images": {"pixels": draw.integers(0, 17, (rows, 8, 8), dtype=np.uint8)},
        "32x32x3 images": {"pixels": np.broadcast_to(few[:1], (rows, 32, 32, 3))},
        "texts of 60 bytes": {"text": pa.array([f"{number:060d}" for number in range(rows)])},
    }


def harness(inputs: ModelRows, task: Task) -> float:
    with tempfile.TemporaryDirectory() as folder:
        job = Job(Path(folder) / "seed-0" / "main", 0, task)
        benchmark = replace(find_benchmark("modadd97/xi35"))
        vars(benchmark)["task"] = task
        query = Predictor(benchmark, BATCH)
        start = time.perf_counter()
        query.predict_all(OneMillisecond(), "last", inputs, job, "bench")
        return time.perf_counter() - start


def loop(inputs: ModelRows) -> float:
    """The least that any evaluation does: slice the inputs, ask, collect the answers."""
    model, result = OneMillisecond(), []
    start = time.perf_counter()
    for begin in range(0, len(inputs), BATCH):
        batch = {name: np.asarray(values[begin : begin + BATCH]) for name, values in inputs.columns.items()}
        result.append(model.predict(batch))
    np.concatenate(result)
    return time.perf_counter() - start


def overhead() -> None:
    print(f"a model of 1 ms per batch of {BATCH}, {BATCHES} batches; medians of {ROUNDS} interleaved rounds")
    for name, values in columns().items():
        task = Task("classification", tuple(values), "label", classes=97)
        inputs = ModelRows(dict(values), np.arange(BATCH * BATCHES, dtype=np.uint64), "ood_test")
        times: dict[str, list[float]] = {"harness": [], "loop": []}
        for _ in range(ROUNDS):
            times["loop"].append(loop(inputs))
            times["harness"].append(harness(inputs, task))
        medians = {key: statistics.median(result) for key, result in times.items()}
        more = medians["harness"] / medians["loop"] - 1
        each = (medians["harness"] - medians["loop"]) / BATCHES * 1e6
        print(
            f"{name:>18}  loop {medians['loop']:.3f} s  harness {medians['harness']:.3f} s  overhead {more:6.1%}  ({each:.0f} us a batch)"
        )


def million() -> None:
    """Written as one seed's answers to one part, read back, and scored by accuracy with its interval."""
    task = Task("classification", ("a",), "label", classes=10)
    draw = np.random.default_rng(0)
    ids = np.sort(draw.integers(0, 2**63, ROWS, dtype=np.uint64))
    truth = draw.integers(0, 10, ROWS)
    answers = Answers.all_given(np.where(draw.uniform(size=ROWS) < 0.9, truth, 0))
    inputs = ModelRows({"a": truth}, ids, "ood_test")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"\n{ROWS:,} predictions")
    total = 0.0
    with tempfile.TemporaryDirectory() as folder:
        names = ("name", "split", "manifest_identity", "entry_identity", "selection")
        plan = {
            "benchmark": {**dict.fromkeys(names, "bench"), "protocol_seeds": 1},
            "model": {"name": "bench", "kind": "own", "code": "0"},
            "budget": {"name": "full", "device": "cpu"},
            "seeds": [0],
            "farshift": "0",
        }
        with RunFolder.begin(Path(folder) / "run", plan) as run:
            for name, step in (("written", lambda: write(run, task, inputs, answers)), ("finished", run.finish)):
                total += timed(name, step)
        total += timed("scored", lambda: score(Path(folder) / "run", task, ids, truth))
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{'all':>10}  {total:.2f} s (goal: 3 s), {peak:.0f} MB on top of the inputs (goal: 500 MB)")


def timed(name: str, step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    seconds = time.perf_counter() - start
    print(f"{name:>10}  {seconds:.2f} s")
    return seconds


def write(run: RunFolder, task: Task, inputs: ModelRows, answers: Answers) -> None:
    job = run.job(0, "main", task)
    job.asks("last", inputs)
    with Shard(job, "last", inputs) as shard:
        for start in range(0, ROWS, BATCH):
            here = slice(start, start + BATCH)
            shard.add(start, min(start + BATCH, ROWS), inputs.row_ids[here], answers[here])
    run.finish_job(job, {}, [])
    run.finish_seed(0, [job])


def score(path: Path, task: Task, ids: np.ndarray, truth: np.ndarray) -> None:
    from farshift.benchmarks.runs.predictions import read_answers
    from farshift.benchmarks.runs.run import read_run
    from farshift.benchmarks.scoring.completeness import split_blocks

    (table,) = split_blocks(read_run(path).predictions()).values()
    assert np.array_equal(table["row_id"].to_numpy(), ids)
    result = estimate_mean(AnsweredRows(task, ids, truth, [read_answers(table, task)]).by(find_metric("accuracy")))
    assert 0.9 < result.value < 0.92, result


if __name__ == "__main__":
    if sys.argv[1:] != ["--million"]:
        overhead()
    million()
