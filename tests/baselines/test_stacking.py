"""How many replicas are trained at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from farshift.baselines.training import stack_size as stacking
from farshift.baselines.training.trainer import Training

from .plain_loops import case, settings, stack


def make(network: str, **own: Any) -> Any:
    """Makes a training of so many replicas, and remembers how many were asked for."""
    data, sizes = case(network, 16)

    def training(some: Sequence[int]) -> Training:
        requested.append(len(some))
        names = [f"replica {number}" for number in some]
        return Training(stack(network, [settings(network, **own)] * len(some), data, sizes, 5, names=names), data, 5)

    requested: list[int] = []
    return training, requested


@pytest.mark.parametrize("network", ["mlp", "lstm", "transformer"])
def test_small_steps_are_stacked_all_at_once_on_a_cpu_without_a_clock(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stacking, "measure_step_seconds", None)
    training, _ = make(network, batch_size=4)
    assert stacking.choose_stack_size(training, range(20)) == 20


def test_a_step_that_keeps_a_core_busy_is_taken_by_each_replica_alone() -> None:
    training, requested = make("mlp", batch_size=4000, width=512, depth=2)
    assert stacking.choose_stack_size(training, range(20)) == 1
    assert requested == [1]


def test_one_replica_is_not_measured() -> None:
    training, requested = make("mlp")
    assert stacking.choose_stack_size(training, [0]) == 1
    assert not requested


@pytest.mark.parametrize(
    ("cost", "expected"),
    [
        ({1: 1.0, 4: 4.0, 16: 16.0, 64: 64.0}, 1),
        ({1: 1.0, 4: 1.1, 16: 1.6, 64: 9.0}, 16),
        ({1: 1.0, 4: 1.1, 16: 1.6, 64: 2.0}, 64),
    ],
)
def test_elsewhere_the_count_of_the_least_time_for_each_is_taken(
    monkeypatch: pytest.MonkeyPatch, cost: dict[int, float], expected: int
) -> None:
    monkeypatch.setattr(stacking, "measure_step_seconds", lambda count: cost[count])
    assert stacking.measure_stack_size(lambda count: count, 64) == expected  # type: ignore[arg-type, return-value]


def test_a_count_for_which_memory_does_not_suffice_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def step_seconds(count: int) -> float:
        if count == 64:
            raise RuntimeError("out of memory")
        return 1.0

    monkeypatch.setattr(stacking, "measure_step_seconds", step_seconds)
    assert stacking.measure_stack_size(lambda count: count, 64) == 16  # type: ignore[arg-type, return-value]


def test_another_error_while_measuring_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def step_seconds(count: int) -> float:
        raise RuntimeError("shapes differ")

    monkeypatch.setattr(stacking, "measure_step_seconds", step_seconds)
    with pytest.raises(RuntimeError, match="shapes differ"):
        stacking.measure_stack_size(lambda count: count, 4)  # type: ignore[arg-type, return-value]
