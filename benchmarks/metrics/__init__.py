"""Metrics: one file each, pure NumPy, versioned, and mergeable: scores do not depend on how rows were sharded.

A metric module has

    VERSION: int                             raised by any change that alters a value
    TASKS: tuple[str, ...]                   the task types it can score
    NEEDS: "prediction" | "scores"           whether it uses predictions or class probabilities
    BETTER: "higher" | "lower"
    BOUNDS: tuple[float, float]              lower and upper bound

and one of two forms. A mean over rows has

    per_row(answers, truth, task) -> float64 array, shape (rows,)

any other statistic has a state, a dictionary of arrays that is sufficient to compute it:

    update(answers, truth, task) -> State
    merge(left, right) -> State              combines the states of disjoint rows; associative and commutative
    compute(state) -> float                  NaN if it is undefined

`answers` are settled (`Answers.settled`): every row has an answer; a row that the model abstained on or failed has a
wrong one.
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
from ._tally import State as State
from ._tally import added


@dataclass(frozen=True)
class Metric:
    """A metric module with a uniform interface, `update`, `merge` and `compute`, whichever form it has."""

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
        """The value of the metric on settled answers."""
        return self.compute(self.update(answers, truth, task))


def metric(name: str, version: int | None = None) -> Metric:
    """The metric called `name`; raises if the installed version is another."""
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
