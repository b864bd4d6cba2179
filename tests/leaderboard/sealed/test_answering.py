"""A draw is answered by the evaluation loop of every other run: what a model or a protocol says of asking holds there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import farshift as fs
import numpy as np
import pytest
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.harness.predictor import TimeLimit
from farshift.benchmarks.runs.run import Run
from farshift.leaderboard.sealed.submit import predict_draw
from sealed_cases import ON, Handed


class Guesses:
    """A factory of models that guess."""

    name = "guesses"

    def __call__(self, seed: int) -> Any:
        return self

    def predict(self, batch: Any) -> Any:
        return np.zeros(len(batch["coins"]), int)


class Endpoint(Guesses):
    """One that paces its own requests, and knows the digest of what decides its answers."""

    keeps_time = True
    code = "e" * 64


Ask = Callable[..., Run]


@pytest.fixture(params=["evaluate", "predict_draw"])
def ask(request: pytest.FixtureRequest, handed: Handed, tmp_path: Path) -> Ask:
    """Both ways in which a model comes to a run."""
    out = tmp_path / "run"
    if request.param == "evaluate":
        return lambda model, **more: fs.evaluate(model, find_benchmark(ON), seeds=1, out=out, **more)
    return lambda model, **more: predict_draw(model, handed.draw, seeds=1, out=out, **more)


@pytest.mark.parametrize(
    ("model", "options", "seconds"),
    [(Guesses(), {}, 600.0), (Endpoint(), {}, 0.0), (Endpoint(), {"time_limit": 5.0}, 5.0)],
    ids=["a model", "one that paces itself", "one with a limit set"],
)
def test_a_model_has_the_time_that_its_own_pacing_asks_for(
    ask: Ask, model: Any, options: dict[str, Any], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[float] = []

    class Noted(TimeLimit):
        def __init__(self, seconds: float, *more: Any) -> None:
            limits.append(seconds)
            super().__init__(seconds, *more)

    monkeypatch.setattr("farshift.benchmarks.harness.predictor.TimeLimit", Noted)
    ask(model, **options)
    assert limits == [seconds]


def test_the_digest_of_its_code_that_a_model_brings_is_on_the_card(ask: Ask) -> None:
    assert ask(Endpoint()).card.model.code == "e" * 64


def test_sizes_of_batches_are_held_to_whole_numbers(ask: Ask) -> None:
    with pytest.raises(fs.FarshiftError, match="batch_size must be a whole number"):
        ask(Guesses(), batch_size=0.5)
