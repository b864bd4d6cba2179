"""Whose seconds a training took: shares that add up to it, by the steps that each replica took, also across a kill."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from farshift.baselines.running.sweep import run_baseline
from farshift.baselines.training.trained_group import FitSeconds
from farshift.baselines.training.trainer import Training
from farshift.baselines.training.training_rows import FitInput, Member
from farshift.benchmarks.benchmark import Benchmark, find_benchmark
from farshift.benchmarks.model_inputs import streamed
from farshift.core.errors import ModelError

from .killed_groups import fitted, killed_before, made, rows

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

    for module in ("trained_group", "trainer", "replica_group"):
        monkeypatch.setattr(f"farshift.baselines.training.{module}.Stopwatch", Watch)

    def spent(seconds: float) -> None:
        clock[0] += seconds

    return spent


def each_step_takes(seconds: float, spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch) -> None:
    step = Training.step
    monkeypatch.setattr(Training, "step", lambda self: (spend(seconds), step(self))[1])


def test_replicas_that_take_no_step_have_even_shares(spend: Callable[[float], None]) -> None:
    result = FitSeconds(["a", "b"])
    spend(3.0)
    result.add(3.0, {"a": 0, "b": 0})
    result.close()
    assert [result.of("a"), result.of("b")] == [1.5, 1.5]


def test_settings_of_equal_values_have_a_share_each(spend: Callable[[float], None]) -> None:
    result = FitSeconds(["a", "a", "b"])
    spend(4.0)
    result.add(4.0, {"a": 1, "b": 1})
    result.close()
    assert 2 * result.of("a") + result.of("b") == 4.0


def test_replicas_of_one_stack_have_equal_shares_that_add_up_to_the_training(
    spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(1.0, spend, monkeypatch)
    fit = fitted(made(), SEEDS)
    assert [fit.seconds(member) for member in SEEDS] == [4.0, 4.0, 4.0]


def test_a_replica_that_stopped_early_has_less_of_the_seconds(
    spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(1.0, spend, monkeypatch)
    members = [Member(0, {"lr": 0.01}), Member(0, {"lr": 1.0})]
    train = rows().train
    fit = fitted(made(check_every=1, patience=1), members, given=FitInput(train, train))
    steps = [fit.remarks(member)["steps"] for member in members]
    seconds = [fit.seconds(member) for member in members]
    assert steps[0] > steps[1]
    assert seconds[0] / seconds[1] == pytest.approx(steps[0] / steps[1], rel=1e-3)
    assert sum(seconds) == pytest.approx(max(steps), abs=1e-3)


def test_a_replica_that_fails_has_the_seconds_until_then(
    spend: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    each_step_takes(1.0, spend, monkeypatch)
    members = [Member(0, {}), Member(0, {"lr": 1e30})]
    fit = fitted(made(), members)
    assert sum(fit.seconds(member) for member in members) == pytest.approx(12.0, abs=1e-3)
    assert fit.seconds(members[0]) > fit.seconds(members[1])


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
    assert [fit.seconds(member) for member in SEEDS] == [4.0, 4.0, 4.0]
    assert [fitted(made(), SEEDS, tmp_path).seconds(member) for member in SEEDS] == [4.0, 4.0, 4.0]


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
