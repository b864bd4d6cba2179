"""Evaluation by several processes, under the real torchrun: the same predictions and scores, to the byte."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import farshift as fs
import pytest
from farshift.core.world import SINGLE_PROCESS, World, get_world

pytest.importorskip("torch")

MODEL = """
import os, numpy as np
class Slowly:
    '''Trained, and asked; notes which process answered how many rows.'''
    def __init__(self, seed): self.seed, self.rows = seed, 0
    def fit(self, train, val, budget): return {"rows": len(train)}
    def predict(self, batch):
        self.rows += len(batch["a"])
        with open(os.environ["NOTES"], "a") as notes: notes.write(f"{os.environ.get('RANK', '-')} {len(batch['a'])}\\n")
        return (batch["a"] + batch["b"] + (batch["a"] % 7 == self.seed)) % 97

class Untrained(Slowly):
    fit = None
    def predict(self, batch):
        answer = super().predict(batch)
        if os.environ.get("DIES", "nobody") == os.environ.get("RANK") and self.rows > 4000: os.kill(os.getpid(), 9)
        return answer
"""


def launched(tmp_path: Path, model: str, out: Path, processes: int, **environment: str) -> subprocess.CompletedProcess:
    (tmp_path / "m.py").write_text(MODEL)
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), "-m", "farshift"]
    options = ["--on", "modadd97/xi35", "--seeds", "2", "--out", str(out), "--batch-size", "300", "--name", "m"]
    import os

    return subprocess.run(
        [sys.executable, *command, "evaluate", f"{tmp_path / 'm.py'}:{model}", *options],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env=os.environ | {"NOTES": str(tmp_path / "notes"), "OMP_NUM_THREADS": "1"} | environment,
    )


def alone(tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch) -> fs.read_run:
    monkeypatch.setenv("NOTES", str(tmp_path / "notes-alone"))
    space: dict = {}
    exec(MODEL, space)
    return fs.evaluate(space[model], on="modadd97/xi35", seeds=2, out=tmp_path / "alone", batch_size=300, name="m")


def rows_by_rank(notes: Path) -> dict[str, int]:
    result: dict[str, int] = {}
    for line in notes.read_text().splitlines():
        rank, rows = line.split()
        result[rank] = result.get(rank, 0) + int(rows)
    return result


def test_two_processes_share_the_rows_and_give_byte_identical_predictions_and_scores(tmp_path, monkeypatch):
    item = alone(tmp_path, "Slowly", monkeypatch)
    done = launched(tmp_path, "Slowly", tmp_path / "two", 2)
    assert done.returncode == 0, done.stderr[-2000:]
    two = fs.read_run(tmp_path / "two")
    assert (two.path / "predictions.parquet").read_bytes() == (item.path / "predictions.parquet").read_bytes()
    assert fs.score(two).json() == fs.score(item).json()
    shares = rows_by_rank(tmp_path / "notes")
    assert sum(shares.values()) == item.predictions().num_rows, "each row is asked for once"
    assert abs(shares["0"] - shares["1"]) <= 300 * 2 * 3, "about half each"
    assert done.stdout.count("modadd97/xi35 (accuracy") == 1, "one process speaks"
    assert sorted(path.name for path in two.path.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]


@pytest.mark.slow
def test_a_run_that_lost_a_process_goes_on_under_another_world_size(tmp_path, monkeypatch):
    item = alone(tmp_path, "Untrained", monkeypatch)
    done = launched(tmp_path, "Untrained", tmp_path / "r", 2, DIES="1")
    assert done.returncode != 0
    stored = sum(rows_by_rank(tmp_path / "notes").values())
    (tmp_path / "notes").unlink()
    done = launched(tmp_path, "Untrained", tmp_path / "r", 1)
    assert done.returncode == 0, done.stderr[-2000:]
    run = fs.read_run(tmp_path / "r")
    assert (run.path / "predictions.parquet").read_bytes() == (item.path / "predictions.parquet").read_bytes()
    again = sum(rows_by_rank(tmp_path / "notes").values())
    assert 0 < again < item.predictions().num_rows, "what was answered was not asked again"
    assert stored > 0


def test_shares_of_any_world_size_cover_every_batch_once():
    for size in range(1, 9):
        for batches in range(20):
            covered = [number for rank in range(size) for number in World(rank, size).share(batches)]
            assert covered == list(range(batches))


def test_a_process_that_nobody_started_together_is_alone(monkeypatch):
    assert get_world() == SINGLE_PROCESS
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert get_world() == SINGLE_PROCESS, "other launchers set these too; torchrun also says where the first process is"
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29500")
    assert (get_world().rank, get_world().size) == (1, 2)


def test_a_leader_that_was_killed_is_not_joined(tmp_path, monkeypatch):
    """What a killed launch left behind lets no process of the next one in before its own leader has begun."""
    from farshift.benchmarks.runs import run_folder

    out = tmp_path / "r"
    out.mkdir()
    (out / "leader").write_text("a:1::")
    waited = []
    monkeypatch.setattr(run_folder, "_STALE_SECONDS", 0.2)
    began = time.monotonic()
    with (
        pytest.raises(run_folder.BadRun, match="waited"),
        run_folder.RunFolder.begin(out, {"seeds": [0]}, World(1, 2, "a:1::")),
    ):
        waited.append("in")
    assert not waited
    assert time.monotonic() - began > 0.2
