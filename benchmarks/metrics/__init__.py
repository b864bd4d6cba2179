"""Metrics: one file each, pure NumPy, versioned, and mergeable: scores do not depend on how rows were sharded.

A metric module has

    VERSION: int                             raised by any change that alters a value
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

`answers` are settled (`Answers.fill_missing`): every row has an answer; a row that the model abstained on or failed has
a wrong one.

A statistic may let the benchmark say more (`options` of its pin), and read fields of the rows beside answer and label:

    OPTIONS: type[BaseModel]                 what may be said
    fields(options) -> tuple[str, ...]       the fields that it reads, whatever their role
    update(answers, truth, task, columns, options) -> State
    compute(state, options) -> float

`columns` holds those fields by name, arrays of shape (rows,); the task's label is not in it, since `truth` is what rows
are held against. A statistic over groups of rows (`_groups.py`) also says what its groups are to an interval:

    GROUPS: "fixed" | "drawn"                these groups and no others; or a sample of groups like them
    SMOOTH = False                           it picks some of the groups (the worst, a quantile), so that a few rows
                                             more or less may move it by a jump

and any metric what guessing scores, where the task fixes that:

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
from ...core.plugins import load_module
from ..answers import Answers
from ..model import Columns, Task
from ._groups import find_memberships
from ._tally import State as State
from ._tally import add_states

NO_COLUMNS: Columns = MappingProxyType({})


@dataclass(frozen=True)
class Metric:
    """A metric module with a uniform interface, `update`, `merge` and `compute`, whichever form it has.

    fields: what `update` must be given of the rows, by name. groups, smooth: see `GROUPS` and `SMOOTH` above."""

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
        """Such as `accuracy@1`."""
        return f"{self.name}@{self.version}"

    def value(self, answers: Answers, truth: NDArray[Any], task: Task, columns: Columns = NO_COLUMNS) -> float:
        """The value of the metric on settled answers."""
        return self.compute(self.update(answers, truth, task, columns))

    def memberships(self, truth: NDArray[Any], task: Task, columns: Columns) -> NDArray[np.str_]:
        """The groups of each row, by name, (n, K), of a metric over groups (`_groups.find_memberships`)."""
        return find_memberships(self.options, truth, task, columns)


def find_metric(name: str, version: int | None = None, options: Mapping[str, Any] | None = None) -> Metric:
    """The metric called `name`; raises if the installed version is another, or does not take these `options`."""
    metric_module = load_module("benchmarks/metrics", name, "metric")
    if version is not None and version != metric_module.VERSION:
        raise FarshiftError(f"the metric {name}@{version} is asked for; here it is version {metric_module.VERSION}")
    parsed = _parse_options(metric_module, name, options or {})
    per_row = getattr(metric_module, "per_row", None)
    if per_row is not None:
        update, merge, compute = _make_sum_update(per_row), add_states, _compute_mean
    elif parsed is None:
        update, merge, compute = _ignore_columns(metric_module.update), metric_module.merge, metric_module.compute
    else:
        update = partial(_update_with_options, metric_module.update, parsed)
        merge, compute = metric_module.merge, partial(metric_module.compute, options=parsed)
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
        () if parsed is None else tuple(metric_module.fields(parsed)),
        getattr(metric_module, "GROUPS", None),
        getattr(metric_module, "SMOOTH", True),
        parsed,
        getattr(metric_module, "chance", None),
    )


def _parse_options(metric_module: ModuleType, name: str, options: Mapping[str, Any]) -> Any:
    """What the benchmark says, held to the module's `OPTIONS`; None of a metric without any."""
    from pydantic import ValidationError

    model = getattr(metric_module, "OPTIONS", None)
    if model is None:
        if options:
            raise BadDefinition(f"the metric {name} takes no options, and is given {', '.join(sorted(options))}")
        return None
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, item['loc']))}: {item['msg']}".lstrip(": ") for item in error.errors())
        raise BadDefinition(f"options of the metric {name}: {wrong}") from error


def _make_sum_update(per_row: Callable[[Answers, NDArray[Any], Task], NDArray[np.float64]]) -> Callable[..., State]:
    def update(answers: Answers, truth: NDArray[Any], task: Task, columns: Columns = NO_COLUMNS) -> State:
        scores = per_row(answers, truth, task)
        return {"sum": np.array(scores.sum()), "rows": np.array(len(scores))}

    return update


def _compute_mean(state: State) -> float:
    return float(state["sum"] / state["rows"]) if state["rows"] else float("nan")


def _ignore_columns(plain: Callable[[Answers, NDArray[Any], Task], State]) -> Callable[..., State]:
    def update(answers: Answers, truth: NDArray[Any], task: Task, columns: Columns = NO_COLUMNS) -> State:
        return plain(answers, truth, task)

    return update


def _update_with_options(
    update: Callable[..., State],
    options: Any,
    answers: Answers,
    truth: NDArray[Any],
    task: Task,
    columns: Columns = NO_COLUMNS,
) -> State:
    return update(answers, truth, task, columns, options)
