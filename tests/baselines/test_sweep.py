"""Sweeps: the engine changes nothing, a kill costs nothing that was done, replica groups serve whatever asks them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import farshift as fs
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training.trained_group import TrainedGroup
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.runs.run import Run
from farshift.benchmarks.runs.run_folder import RunFolder
from farshift.core.errors import BadRun, UnknownName
from support import SHARED

from .killed_groups import killed_before

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def by_processes(tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("processes") / "run"
    return run_baseline("mlp", ON, seeds=4, steps=60, out=out, engine="processes")


@pytest.mark.slow
def test_processes_and_local_give_the_same_scores(tmp_path, by_processes):
    local = run_baseline("mlp", ON, seeds=4, steps=60, out=tmp_path / "local", engine="local")
    assert fs.score(local).json() == fs.score(by_processes).json()


def test_the_run_card_says_what_was_spent(tmp_path):
    run = run_baseline("quadratic-mlp", ON, seeds=1, steps=5, out=tmp_path / "run")
    spent = run.card.spent.by_seed["seed_0"]
    assert spent["steps"] == 5
    assert {"fit_seconds", "predict_seconds"} <= spent.keys()
    assert len(run.card.model.code) == 64
    assert run.card.environment["torch"]


SLOW = """
import sys
if __name__ == "__main__":
    from farshift.baselines.running.sweep import run_baseline
    run_baseline("mlp", "modadd97/xi35", seeds=4, steps=int(sys.argv[2]), out=sys.argv[1], engine="processes")
"""


def children(pid: int) -> list[int]:
    result = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line) for line in result.stdout.split()]


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["parent", "worker"])
def test_a_kill_keeps_finished_replicas(tmp_path, victim, by_processes):
    script = tmp_path / "sweep.py"
    script.write_text(SLOW)
    out = tmp_path / "run"
    process = subprocess.Popen([sys.executable, script, out, "60"], stderr=subprocess.PIPE, text=True)
    shards = out / "shards"
    deadline = time.monotonic() + 500
    while time.monotonic() < deadline and not (shards.is_dir() and list(shards.glob("*.json"))):
        time.sleep(0.01)
    if victim == "parent":
        process.send_signal(signal.SIGKILL)
    else:
        for pid in children(process.pid):
            os.kill(pid, signal.SIGKILL)
    error = process.communicate(timeout=300)[1]  # ends only when no orphan holds the pipe any more
    if victim == "worker" and process.returncode:
        assert "a worker process died" in error
    if not (out / "run.toml").exists():
        with pytest.raises(BadRun, match="unfinished"):
            fs.read_run(out)
        before = {path.name: path.stat().st_mtime_ns for path in shards.glob("seed-*.json")}
        assert before
        run_baseline("mlp", ON, seeds=4, steps=60, out=out, engine="local")
    assert fs.score(out).json() == fs.score(by_processes).json()


def test_what_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UnknownName, match="did you mean knn"):
        run_baseline("kn", ON, out=tmp_path / "r")
    with pytest.raises(UnknownName, match="no engine named 'rays': did you mean ray"):
        run_baseline("knn", ON, out=tmp_path / "r", engine="rays")
    with pytest.raises(FarshiftError, match="device 'nonsense': use cpu"):
        run_baseline("quadratic-mlp", ON, out=tmp_path / "r", device="nonsense")
    with pytest.raises(
        FarshiftError,
        match="^lstm: the network lstm is for sequence tasks, and this is a classification task: use --network ",
    ):
        run_baseline("lstm", ON, seeds=1, steps=1, out=tmp_path / "r")


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_is_one_line_and_ends_the_workers(tmp_path):
    """A terminal sends it to the whole group: parent and workers."""
    out = tmp_path / "run"
    command = [sys.executable, "-m", "farshift", "run", "mlp", "--on", ON, "--seeds", "8", "--steps", "60"]
    process = subprocess.Popen(
        [*command, "--engine", "processes", "--out", str(out)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list(out.glob("shards/*.json")):
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert "interrupted; finished work is kept" in error
    assert "Traceback" not in error
    with pytest.raises(BadRun, match="unfinished"):
        fs.read_run(out)


@pytest.mark.parametrize(
    ("name", "on", "has"), [("quadratic-mlp", "modadd97/xi35", False), ("mlp", "modadd97/xi35", True)]
)
def test_class_probabilities_are_given_by_networks_whose_outputs_are_logits(tmp_path, name, on, has):
    run = run_baseline(name, on, seeds=1, out=tmp_path / "r", budget="quick", steps=3)
    assert ("scores" in run.predictions().column_names) is has


def tiny(out: Path, **more: Any) -> Run:
    """Two seeds of two settings, one of which keeps three checkpoints."""
    settings = {"one": {"width": 8}, "three": {"width": 8, "lr": 0.01, "candidates": 3}}
    return run_baseline("mlp", ON, seeds=2, steps=9, out=out, settings=settings, **more)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return tiny(tmp_path_factory.mktemp("clean") / "run")


KILLED: list[tuple[str, type, str, int]] = [
    ("training", Training, "step", 6),
    ("training the other setting", Training, "step", 8),
    ("the first answer", TrainedGroup, "predict", 1),
    ("answering", TrainedGroup, "predict", 10),
    ("one seed done", RunFolder, "finish_seed", 2),
    ("all seeds done", RunFolder, "finish", 1),
]


def test_a_run_killed_anywhere_gives_the_same_bytes_when_it_is_repeated(tmp_path: Path, clean: Run) -> None:
    """Killed, taken up, killed later, and so on."""
    out = tmp_path / "run"
    for where, owner, name, call in KILLED:
        assert killed_before(owner, name, call, lambda: tiny(out)) == -9, where
        assert not (out / "run.toml").exists()
    again = tiny(out)
    assert (again.path / "predictions.parquet").read_bytes() == (clean.path / "predictions.parquet").read_bytes()
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]


def test_three_checkpoints_of_a_setting_are_three_candidates_for_the_scorer(clean: Run) -> None:
    assert clean.card.model.candidates == ("one/last", "three/step-3", "three/step-6", "three/last")
    requested = clean.predictions().group_by("candidate").aggregate([("row_id", "count")]).to_pylist()
    assert len({row["row_id_count"] for row in requested}) == 1
    assert len(requested) == 4


def counted(monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> list[int]:
    full, calls = getattr(owner, name), []
    monkeypatch.setattr(owner, name, lambda self, *given: (calls.append(1), full(self, *given))[1])
    return calls


def test_a_rule_that_trains_folds_trains_each_fold_once_for_the_whole_team(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"low": {"lr": 0.001}, "high": {"lr": 0.1}}
    on = "linear_unit_test_2/shuffled"
    fixed: dict[str, Any] = {"seeds": 2, "steps": 5, "settings": settings, "selection": "leave_one_group_out"}
    with monkeypatch.context() as patch:
        trained = counted(patch, Training, "run")
        together = run_baseline("mlp", on, out=tmp_path / "together", **fixed)
    groups = len({*find_benchmark(on).part("train").row_metadata["group"].tolist()})
    assert groups > 1
    assert len(trained) == 1 + groups
    alone = run_baseline("mlp", on, out=tmp_path / "alone", stack=1, **fixed)
    scores = [np.array(run.predictions()["scores"].to_pylist()) for run in (together, alone)]
    assert np.abs(scores[0] - scores[1]).max() < 1e-5
    assert fs.score(together).ood.value == pytest.approx(fs.score(alone).ood.value)


OWN = """
name = "{name}"
title = "Own"
citation = "none"
network = "mlp"
algorithm = "{algorithm}"
quick = {{ steps = 5 }}
full = {{ steps = 5 }}
"""


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The published data, and a folder for own recipes."""
    if not SHARED.exists():
        pytest.skip("the published data are not here")
    monkeypatch.setenv("FARSHIFT_MIRRORS", str(SHARED))
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "own"))
    recipes = tmp_path / "own" / "baselines" / "recipes"
    recipes.mkdir(parents=True)
    return recipes


def test_a_baseline_that_adapts_is_asked_as_the_protocol_says(
    tmp_path: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (shared / "own-t3a.toml").write_text(OWN.format(name="own-t3a", algorithm="t3a"))
    resets, sizes = counted(monkeypatch, TrainedGroup, "reset"), []
    full = TrainedGroup.predict
    monkeypatch.setattr(
        TrainedGroup,
        "predict",
        lambda self, member, batch, *more: (sizes.append(len(batch["features"])), full(self, member, batch, *more))[1],
    )
    run_baseline("own-t3a", "vowel/speakers_adapting", seeds=1, out=tmp_path / "run")
    assert len(resets) == 3, "before each of id_test, id_val and ood_test"
    assert max(sizes) == 32


def test_validation_on_crafted_shifts_works_with_teams(tmp_path: Path, shared: Path) -> None:
    settings = {"low": {"lr": 0.001}, "high": {"lr": 0.1}}
    run = run_baseline(
        "mlp", "optdigits/writers", seeds=2, steps=2, out=tmp_path / "run", settings=settings, selection="crafted_shift"
    )
    assert run.card.model.candidates == ("low/last", "high/last")
    assert fs.score(run).seeds == (0, 1)
