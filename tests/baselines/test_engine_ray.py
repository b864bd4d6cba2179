"""Replica groups on a real Ray cluster of two workers, started by the engine."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import farshift as fs
import pytest
from farshift import FarshiftError
from farshift.baselines.running.sweep import run_baseline
from farshift.core.engines import Needs, open_engine
from farshift.core.errors import MissingExtra, ModelError

ON = "modadd97/xi35"

DYING = """
'''Empirical risk whose first replica's process is killed once, after its eighth step.'''
import os, signal
from pathlib import Path
from farshift.baselines.training import replica_group
from farshift.baselines.algorithms.erm import Algorithm as Base

KIND = "any"
CITATION = "none"
TASKS = ("classification",)
TOUCHES = ("train",)
SEARCH = {}
SETTINGS = {"loss": "cross-entropy", "label_smoothing": 0.0, "notes": ""}
replica_group.CHECKPOINT_SECONDS = 0.0

class Algorithm(Base):
    def after(self, network, clock):
        notes = Path(self.hyperparameters["notes"])
        with open(notes, "a") as file:
            file.write(f"{','.join(name[-1] for name in self.about.names)} {clock.total}\\n")
        if clock.total == 7 and self.about.names[0].endswith("0") and not notes.with_suffix(".killed").exists():
            notes.with_suffix(".killed").touch()
            os.kill(os.getpid(), signal.SIGKILL)
"""
RECIPE = """
name = "dying"
title = "Dying"
citation = "none"
network = "mlp"
algorithm = "dying"
settings = {{ width = 8, notes = {notes!r} }}
quick = {{ steps = 12 }}
full = {{ steps = 12 }}
"""


@pytest.fixture
def dying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The notes of a baseline that kills its worker."""
    for folder, name, text in (
        ("algorithms", "dying.py", DYING),
        ("recipes", "dying.toml", RECIPE.format(notes=str(tmp_path / "notes"))),
    ):
        (tmp_path / "own" / "baselines" / folder).mkdir(parents=True)
        (tmp_path / "own" / "baselines" / folder / name).write_text(text)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "own"))
    return tmp_path / "notes"


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_a_worker_that_is_killed_costs_its_team_what_it_did_since_the_last_checkpoint(
    tmp_path: Path, dying: Path
) -> None:
    run = run_baseline("dying", ON, seeds=3, steps=12, out=tmp_path / "ray", engine="ray", stack=1)
    done = [line.split() for line in dying.read_text().splitlines()]
    steps = {seed: [int(step) for name, step in done if name == seed] for seed in "012"}
    assert dying.with_suffix(".killed").exists()
    assert steps["0"] == [*range(8), *range(7, 12)], "the step whose checkpoint was not written is taken again"
    assert steps["1"] == steps["2"] == list(range(12))
    assert sorted(path.name for path in run.path.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]
    local = run_baseline("dying", ON, seeds=3, steps=12, out=tmp_path / "local", engine="local", stack=1)
    assert (run.path / "predictions.parquet").read_bytes() == (local.path / "predictions.parquet").read_bytes()
    assert fs.score(run).json() == fs.score(local).json()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_an_error_of_a_replica_is_the_same_line_as_anywhere(tmp_path: Path) -> None:
    output = {}
    for engine in ("local", "ray"):
        with pytest.raises(ModelError) as caught:
            run_baseline(
                "mlp", ON, seeds=2, steps=3, out=tmp_path / engine, engine=engine, settings={"a": {"lr": 1e30}}, stack=1
            )
        output[engine] = re.sub(r" \(and .*", "", str(caught.value))
        assert (tmp_path / engine / "plan.json").exists()
    assert output["ray"] == output["local"]
    assert output["ray"].startswith(f"mlp on {ON}, seed 0: mlp/{ON}/0/")
    assert "the loss is not finite at step 2 of 3: lower the setting lr" in output["ray"]


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("farshift.core.engines.find_spec", lambda name: None)
    with (
        pytest.raises(
            MissingExtra, match=r"^the engine ray needs an optional dependency: pip install 'farshift\[ray\]'$"
        ),
        open_engine("ray"),
    ):
        pass


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")
def test_a_cluster_without_a_gpu_says_so_for_cuda() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(FarshiftError) as caught, open_engine("ray", Needs("cuda")):
        pass
    assert str(caught.value) == "the Ray cluster has no GPU, which --device cuda needs: choose another device"
