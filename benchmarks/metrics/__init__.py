"""Metrics, one file each: pure NumPy, versioned and mergeable, so that scores do not depend on how rows were sharded.

A metric module has

    VERSION: int                             incremented by any change that alters a value
    TASKS: tuple[str, ...]                   the task types it can score
    NEEDS: "prediction" | "scores"           whether it uses predictions, or class probabilities (label scores)
    BETTER: "higher" | "lower"
    BOUNDS: tuple[float, float]              lower and upper bound

and one of two forms. A mean over rows has

    per_row(answers, truth, task) -> float64 array, shape (rows,)

any other statistic has a state, a dictionary of arrays that is sufficient to compute it:

    update(answers, truth, task) -> State
    merge(left, right) -> State              combines the states of disjoint rows; associative and commutative
    compute(state) -> float                  NaN if it is undefined

`answers` are complete (`Answers.fill_missing`): a row without a prediction, because the model abstained or failed, has
a wrong answer. For every metric of the package tests/benchmarks/test_metrics_laws.py checks that merging parts gives
the value of the whole, that right answers give the best bound (or NaN), only missing ones the worst, no rows NaN, and
that a missing answer is never better than a given one.

A statistic may have options that the benchmark sets, and may read fields of the rows other than the label:

    OPTIONS: type[BaseModel]                 the schema of its options
    fields(options) -> tuple[str, ...]       the fields that it reads, of any role; without it none
    update(answers, truth, task, columns, options) -> State
    compute(state, options) -> float

`columns` has those fields by name, as arrays of shape (rows,); it does not include the task's label, which is `truth`.
A statistic over groups of rows (`_groups.py`) also declares how an interval treats its groups:

    GROUPS: "fixed" | "drawn"                a fixed set of groups, or a random sample of groups

A statistic that is not a smooth function of the rows, as it selects some of the groups (the worst, a quantile) or adds
up absolute values, says so:

    SMOOTH = False

and any metric may give the score of guessing, if the task determines it:

    chance(task) -> float
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType, ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition, FarshiftError
from ...core.plugins import describe_problem, load_module
from ..answers import Answers
from ..model import Columns, Task
from ._base import State as State
from ._base import add_states
from ._groups import find_memberships

NO_COLUMNS: Columns = MappingProxyType({})
REQUIRED = ("VERSION", "TASKS", "NEEDS", "BETTER", "BOUNDS")


@dataclass(frozen=True)
class Metric:
    """A metric module with a uniform interface for both forms: `update`, `merge` and `compute`.

    fields: the names of the row fields that `update` requires. groups, smooth: see `GROUPS` and `SMOOTH` above."""

    name: str
    version: int
    tasks: tuple[str, ...]
    needs: Literal["prediction", "scores"]
    better: Literal["higher", "lower"]
    bounds: tuple[float, float]
    update: Callable[..., State]
    merge: Callable[[State, State], State]
    compute: Callable[[State], float]
    per_row: Callable[[Answers, NDArray[Any], Task], NDArray[np.float64]] | None
    fields: tuple[str, ...] = ()
    groups: Literal["fixed", "drawn"] | None = None
    smooth: bool = True
    options: Any = field(default=None, repr=False)
    chance: Callable[[Task], float] | None = field(default=None, repr=False)

    @property
    def signature(self) -> str:
        """The name and version, such as `accuracy@1`."""
        return f"{self.name}@{self.version}"

    def value(self, answers: Answers, truth: NDArray[Any], task: Task, columns: Columns = NO_COLUMNS) -> float:
        """Compute the metric on complete answers."""
        return self.compute(self.update(answers, truth, task, columns))

    def memberships(self, truth: NDArray[Any], task: Task, columns: Columns) -> NDArray[np.str_]:
        """Return the names of each row's groups, shape (n, K), for a metric over groups
        (`_groups.find_memberships`)."""
        return find_memberships(self.options, truth, task, columns)


def find_metric(name: str, version: int | None = None, options: Mapping[str, Any] | None = None) -> Metric:
    """Return the metric called `name`; raises an error for another version than the installed one, or invalid
    options."""
    metric_module = load_module("benchmarks/metrics", name, "metric")
    lacking = [constant for constant in REQUIRED if not hasattr(metric_module, constant)]
    if lacking:
        raise BadDefinition(f"{metric_module.__file__} has no {', '.join(lacking)}: add it at the top")
    if version is not None and version != metric_module.VERSION:
        raise FarshiftError(f"metric {name}@{version} is required, but version {metric_module.VERSION} is installed")
    parsed = _parse_options(metric_module, name, options or {})
    per_row = getattr(metric_module, "per_row", None)
    if per_row is not None:
        update, merge, compute = _make_sum_update(per_row), add_states, _compute_mean
    else:
        update, merge, compute = _give_options(metric_module.update, parsed), metric_module.merge, metric_module.compute
        if parsed is not None:
            compute = partial(compute, options=parsed)
    return Metric(
        name,
        metric_module.VERSION,
        tuple(metric_module.TASKS),
        metric_module.NEEDS,
        metric_module.BETTER,
        tuple(metric_module.BOUNDS),
        update,
        merge,
        compute,
        per_row,
        tuple(metric_module.fields(parsed)) if hasattr(metric_module, "fields") else (),
        getattr(metric_module, "GROUPS", None),
        getattr(metric_module, "SMOOTH", True),
        parsed,
        getattr(metric_module, "chance", None),
    )


def _parse_options(metric_module: ModuleType, name: str, options: Mapping[str, Any]) -> Any:
    """Validate the benchmark's options against the module's `OPTIONS`; None for a metric without options."""
    from pydantic import ValidationError

    model = getattr(metric_module, "OPTIONS", None)
    if model is None:
        if options:
            raise BadDefinition(f"metric {name} accepts no options, got {', '.join(sorted(options))}")
        return None
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        wrong = "; ".join(describe_problem(item, model) for item in error.errors())
        raise BadDefinition(f"options of metric {name}: {wrong}") from error


def _make_sum_update(per_row: Callable[[Answers, NDArray[Any], Task], NDArray[np.float64]]) -> Callable[..., State]:
    def update(answers: Answers, truth: NDArray[Any], task: Task, columns: Columns = NO_COLUMNS) -> State:
        scores = per_row(answers, truth, task)
        return {"sum": np.array(scores.sum()), "rows": np.array(len(scores))}

    return update


def _compute_mean(state: State) -> float:
    return float(state["sum"] / state["rows"]) if state["rows"] else float("nan")


def _give_options(plain: Callable[..., State], options: Any) -> Callable[..., State]:
    """Return `update` of a metric with its options, which alone reads columns; None: it has none."""

    def update(answers: Answers, truth: NDArray[Any], task: Task, columns: Columns = NO_COLUMNS) -> State:
        return plain(answers, truth, task) if options is None else plain(answers, truth, task, columns, options)

    return update
