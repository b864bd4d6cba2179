"""Runs of many baselines on many benchmarks: what fails is listed, what is done is kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from farshift import FarshiftError
from farshift.baselines.recipe import find_recipe
from farshift.baselines.running import suite as suites
from farshift.baselines.running.suite import explain_unfit, get_run_folder, make_suite_plans
from farshift.baselines.training.trainer import Training
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.model import Budget
from farshift.cli import app
from typer.testing import CliRunner, Result

ON = ("modadd97/xi35", "modadd97/xi20")


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """A suite of two benchmarks that need no download."""
    monkeypatch.setattr(suites, "load_suite", lambda name: [find_benchmark(on) for on in ON])


def ran(out: Path, *more: str, baselines: tuple[str, ...] = ("mlp",)) -> Result:
    command = ["run", *baselines, "--suite", "two", "--out", str(out), "--seeds", "2", "--steps", "2", *more]
    return CliRunner().invoke(app, command)


def fails_for(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Replicas whose name holds this text lose their numbers."""
    import torch

    full = Training.step

    def poisoned(self: Training) -> None:
        for position, name in enumerate(self.stack.algorithm.about.names):
            if text in name:
                with torch.no_grad():
                    next(self.stack.network.parameters())[position] = torch.nan
        full(self)

    monkeypatch.setattr(Training, "step", poisoned)


def test_a_suite_is_one_run_folder_for_each_pair_and_a_line_of_scores(tmp_path: Path, two: None) -> None:
    result = ran(tmp_path)
    assert result.exit_code == 0, result.output
    assert all((get_run_folder(tmp_path, on, "mlp") / "run.toml").is_file() for on in ON)
    assert f"2 runs: {tmp_path}" in result.stdout
    assert all(on in result.stdout for on in ON)


def test_a_replica_that_fails_stops_no_other_and_is_listed_with_exit_code_1(
    tmp_path: Path, two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fails_for(patch, f"{ON[0]}/1")
        result = ran(tmp_path, "--json")
    assert result.exit_code == 1
    assert [record["benchmark"] for record in json.loads(result.stdout)] == [ON[1]]
    failed = [text for text in result.stderr.splitlines() if text.startswith("failed: ")]
    assert len(failed) == 1
    assert failed[0].startswith(f"failed: mlp on {ON[0]}, seed 1: mlp/{ON[0]}/1: the loss is not finite at step 1 of 2")
    assert not (get_run_folder(tmp_path, ON[0], "mlp") / "run.toml").exists()
    assert (get_run_folder(tmp_path, ON[0], "mlp") / "shards" / "seed-0.json").is_file(), "its other replica is kept"


def test_the_same_command_goes_on_where_the_suite_stopped(
    tmp_path: Path, two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fails_for(patch, f"{ON[0]}/1")
        assert ran(tmp_path).exit_code == 1
    done = (get_run_folder(tmp_path, ON[1], "mlp") / "run.toml").read_bytes()
    # Checkpoints hold what failed: training begins anew where they are removed.
    for file in tmp_path.glob("*/mlp/training/*"):
        file.unlink()
    trained: list[Any] = []
    full = Training.run
    monkeypatch.setattr(Training, "run", lambda self, *given: (trained.append(self), full(self, *given))[1])
    result = ran(tmp_path, "--json")
    assert result.exit_code == 0, result.output
    assert [record["benchmark"] for record in json.loads(result.stdout)] == list(ON)
    assert len(trained) == 1
    assert (get_run_folder(tmp_path, ON[1], "mlp") / "run.toml").read_bytes() == done
    assert not list(tmp_path.glob("*/mlp/training"))


def test_a_budget_that_does_not_exist_is_one_line(tmp_path: Path, two: None) -> None:
    result = ran(tmp_path, "--budget", "huge")
    assert isinstance(result.exception, FarshiftError)
    assert str(result.exception) == "budget 'huge': use full or quick"


def test_options_of_one_benchmark_are_refused_for_a_suite(tmp_path: Path, two: None) -> None:
    result = ran(tmp_path, "--search", "3")
    assert str(result.exception) == "run --suite: --search goes with one benchmark (--on)"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        (
            "lstm",
            "lstm: the network lstm is for sequence tasks, and this is a classification task: "
            "use --network deep_sets or linear or mlp or quadratic_mlp, and for images cnn or grey_mlp or resnet",
        ),
        ("irm", "it is for domain shifts, and this is corrupted-label"),
        ("mlp", ""),
    ],
)
def test_a_suite_has_only_the_baselines_that_belong(name: str, why: str) -> None:
    assert explain_unfit(find_recipe(name), find_benchmark(ON[0])) == why


def test_baselines_that_belong_nowhere_are_one_line(tmp_path: Path, two: None) -> None:
    with pytest.raises(FarshiftError, match="^none of lstm, irm fits a benchmark of the suite two$"):
        make_suite_plans("two", tmp_path, ["lstm", "irm"], Budget())
