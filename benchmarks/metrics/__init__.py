"""Metrics: one file each, pure NumPy, versioned, and mergeable: scores do not depend on how rows were sharded.

A metric module has

    VERSION: int                             raised by any change that moves a value
    TASKS: tuple[str, ...]                   the task types it can score
    NEEDS: "prediction" | "scores"           whether it reads classes, numbers and texts, or class probabilities
    BETTER: "higher" | "lower"
    BOUNDS: tuple[float, float]              the least and the greatest value it can take

and then one of two forms. A mean of rows has

    per_row(answers, truth, task) -> float64 array, shape (rows,)

any other statistic has a state, a dictionary of arrays that is enough to compute it:

    update(answers, truth, task) -> State
    merge(left, right) -> State              of two states of disjoint rows; associative and commutative
    compute(state) -> float                  NaN where it is not defined

`answers` are settled (`Answers.settled`): every row is answered, a lost one wrongly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from ...core.plugins import module
from ..answers import Answers
from ..model import Task
from ._tally import added

State = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Metric:
    """A metric module, by one face: `update`, `merge`, `compute`, whichever form it has."""

    name: str
    version: int
    tasks: tuple[str, ...]
    needs: Literal["prediction", "scores"]
    better: Literal["higher", "lower"]
    bounds: tuple[float, float]
    update: Callable[[Answers, NDArray[Any], Task], State]
    merge: Callable[[State, State], State]
    compute: Callable[[State], float]
    per_row: Callable[[Answers, NDArray[Any], Task], NDArray[np.float64]] | None

    @property
    def signature(self) -> str:
        """Such as `accuracy@1`."""
        return f"{self.name}@{self.version}"

    def value(self, answers: Answers, truth: NDArray[Any], task: Task) -> float:
        """The metric of settled answers, all at once."""
        return self.compute(self.update(answers, truth, task))


def metric(name: str, version: int | None = None) -> Metric:
    """The metric called `name`; refuses a version that is not the one here."""
    found = module("benchmarks/metrics", name, "metric")
    if version is not None and version != found.VERSION:
        raise FarshiftError(f"the metric {name}@{version} is asked for; here it is version {found.VERSION}")
    per_row = getattr(found, "per_row", None)
    if per_row is None:
        update, merge, compute = found.update, found.merge, found.compute
    else:
        update, merge, compute = _summed(per_row), added, _mean
    return Metric(
        name,
        found.VERSION,
        tuple(found.TASKS),
        found.NEEDS,
        found.BETTER,
        tuple(found.BOUNDS),
        update,
        merge,
        compute,
        per_row,
    )


def _summed(per_row: Callable[[Answers, NDArray[Any], Task], NDArray[np.float64]]) -> Callable[..., State]:
    def update(answers: Answers, truth: NDArray[Any], task: Task) -> State:
        scores = per_row(answers, truth, task)
        return {"sum": np.array(scores.sum()), "rows": np.array(len(scores))}

    return update


def _mean(state: State) -> float:
    return float(state["sum"] / state["rows"]) if state["rows"] else float("nan")
