"""The seconds that a training took: even shares of its replicas, also across a kill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training.trained_group import TrainedGroup
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import Member
from farshift.benchmarks.benchmark import Benchmark, find_benchmark
from farshift.benchmarks.model_inputs import streamed
from farshift.core.errors import ModelError

from .killed_groups import fitted, killed_before, made

ON = "modadd97/xi35"
SEEDS = [Member(seed, {}) for seed in range(3)]


@pytest.fixture
def spend(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock of trainings that stands still until seconds are spent."""
    clock = [0.0]

    class Watch:
        def __init__(self) -> None:
            self.start = clock[0]

        def seconds(self) -> float:
            return clock[0] - self.start

    for module in ("trained_group", "trainer"):
        monkeypatch.setattr(f"farshift.baselines.training.{module}.Stopwatch", Watch)

    def spent(seconds: float) -> None:
        clock[0] += seconds

    return spent


def each_step_takes(seconds: float, spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    step = Training.step
    monkeypatch.setattr(Training, "step", lambda self: (spend(seconds), step(self))[1])


def shares(fit: TrainedGroup) -> list[float]:
    seconds = []
    for member in fit.members:
        with fit.trained(member.seed, member.settings) as model:
            seconds.append(model.seconds)
    return seconds


def test_replicas_of_one_stack_have_equal_shares_that_add_up_to_the_training(
    spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(1.0, spend, monkeypatch)
    fit = fitted(made(), SEEDS)
    assert shares(fit) == [4.0, 4.0, 4.0]


def test_the_seconds_before_a_kill_are_in_the_checkpoint(
    tmp_path: Path, spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(1.0, spend, monkeypatch)
    full = Training.step
    assert killed_before(Training, "step", 8, lambda: fitted(made(), SEEDS, tmp_path)) == -9
    steps: list[int] = []
    monkeypatch.setattr(Training, "step", lambda self: (steps.append(1), full(self))[1])
    fit = fitted(made(), SEEDS, tmp_path)
    assert len(steps) < 12, "it goes on where it was killed"
    assert shares(fit) == [4.0, 4.0, 4.0]
    assert shares(fitted(made(), SEEDS, tmp_path)) == [4.0, 4.0, 4.0]


def spent(path: Path, **more: Any) -> list[dict[str, Any]]:
    run = run_baseline("mlp", ON, seeds=3, steps=10, out=path, **more)
    return list(run.card.spent.by_seed.values())


def test_each_seed_of_a_run_has_its_share_on_the_card(
    tmp_path: Path, spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(3.0, spend, monkeypatch)
    assert [seed["fit_seconds"] for seed in spent(tmp_path / "run")] == [10.0, 10.0, 10.0]


def test_a_ceiling_of_device_seconds_is_held_against_each_seeds_own_share(
    tmp_path: Path, spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(3.0, spend, monkeypatch)
    allowed = [10.0]

    def with_ceiling(name: str) -> Benchmark:
        result = find_benchmark(name)
        protocol = result.definition.protocol
        ceiling = protocol.ceiling.model_copy(update={"device_seconds": allowed[0]})
        protocol = protocol.model_copy(update={"ceiling": ceiling})
        return Benchmark(result.definition.model_copy(update={"protocol": protocol}), result.path)

    monkeypatch.setattr(streamed, "find_benchmark", with_ceiling)
    assert len(spent(tmp_path / "run")) == 3, "30 seconds of all are 10 of each"
    allowed[0] = 9.9
    with pytest.raises(ModelError, match=r"seed 0: fit used 10 device_seconds, and the protocol allows 9\.9 \(and 2"):
        spent(tmp_path / "less")
