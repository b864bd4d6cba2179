"""Groups of rows for metrics over groups: the groups of each row, and sums by group.

Groups are defined by fields of the rows (a region, a user), which may differ from the groups of the split, and by the
label. A row may be in no group, in one, or in several: the eight identities of CivilComments overlap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from ._base import Answers, Columns, Floats, State, StrictOptions, Task, Values, add_states

HAS = 0.5
"""A row has the attribute of a field of `of` if its value is at least this: the threshold of WILDS' CivilComments for
shares of raters; for binary fields it is equivalent to 1."""


class Grouping(Protocol):
    """The interface of group options (`Groups`)."""

    @property
    def by(self) -> list[str]: ...
    @property
    def without(self) -> list[str]: ...


class Groups(StrictOptions):
    """`by`: fields; each combination of their values is a group, named by the values ("Asia"; "1, 0"). `without`: names
    of groups that are excluded."""

    by: list[str] = Field(min_length=1)
    without: list[str] = Field([])


class OverlappingGroups(Groups):
    """`of`: fields that each define a group of the rows with a value of at least `HAS`, crossed with the groups of `by`
    ("male, 1")."""

    by: list[str] = Field([])
    of: list[str] = Field([])

    @model_validator(mode="after")
    def _some(self) -> OverlappingGroups:
        if not self.by and not self.of:
            raise ValueError("groups require fields in `by`, in `of`, or in both")
        return self


def list_group_fields(options: Grouping) -> tuple[str, ...]:
    """Return the fields that define these groups."""
    return (*getattr(options, "of", ()), *options.by)


def find_memberships(options: Grouping, truth: Values, task: Task, columns: Columns) -> NDArray[np.str_]:
    """Return the names of each row's groups, shape (n, K), padded with ""; K is the maximum number of groups of a row.

    A field that is the task's label is read from `truth`."""

    def column(name: str) -> Values:
        return np.asarray(truth if name == task.label else columns[name])

    crossed = [_format_names(column(name)) for name in options.by]
    own: list[str] = getattr(options, "of", [])
    if not own:
        groups = _join_texts(crossed)[:, None]
    else:
        each = {name: _join_texts([np.full(len(truth), name), *crossed]) for name in own}
        has = {name: column(name).astype(np.float64) >= HAS for name in own}
        groups = np.stack([np.where(has[name], each[name], "") for name in own], axis=1)
    return np.where(np.isin(groups, options.without), "", groups) if options.without else groups


def _format_names(values: Values) -> NDArray[np.str_]:
    """Return values as strings, shape (n,)."""
    return np.asarray([str(value) for value in values.tolist()], np.str_)


def _join_texts(parts: list[NDArray[np.str_]]) -> NDArray[np.str_]:
    """Join the strings of each row with ", ", shape (n,), once for each combination that occurs."""
    radix = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        values, inverse = np.unique(part, return_inverse=True)
        radix = radix * len(values) + inverse
    _, first, codes = np.unique(radix, return_index=True, return_inverse=True)
    names = [", ".join(str(part[row]) for part in parts) for row in first.tolist()]
    return np.asarray(names, np.str_)[codes]


def sum_by_group(values: Floats, groups: NDArray[np.str_]) -> State:
    """Sum values (n,) over `groups` (n, K): `group`, the sorted names of groups that occur, shape (G,); the `sum` of
    the values in each, float64, and its number of `rows`, int64. A row counts in each of its groups."""
    row, column = np.nonzero(groups != "")
    names, codes = np.unique(groups[row, column], return_inverse=True)
    return {
        "group": names,
        "sum": np.bincount(codes, values[row], len(names)),
        "rows": np.bincount(codes, minlength=len(names)),
    }


def add_group_sums(left: State, right: State) -> State:
    """Merge two states of sums by group."""
    names, codes = np.unique(np.concatenate([left["group"], right["group"]]), return_inverse=True)
    return {
        "group": names,
        "sum": np.bincount(codes, np.concatenate([left["sum"], right["sum"]]), len(names)),
        "rows": np.bincount(codes, np.concatenate([left["rows"], right["rows"]]), len(names)).astype(np.int64),
    }


def compute_group_means(state: State) -> Floats:
    """Compute the mean of each group's rows, shape (G,)."""
    group_means: Floats = state["sum"] / state["rows"]
    return group_means


def split_by_group(groups: NDArray[np.str_], update: Callable[[NDArray[np.int64]], State]) -> State:
    """Stack the state of each group's rows, `update(positions)`, by sorted group name: `group` (G,), and each array of
    the states with a leading axis for the group."""
    names = sorted(set(groups[groups != ""].tolist()))
    states = [update(np.flatnonzero((groups == name).any(axis=1))) for name in names]
    return _stack_states(names, states)


def merge_group_states(left: State, right: State, merge: Callable[[State, State], State]) -> State:
    """Merge two states by group, with `merge` for the states of one group."""
    first, second = _split_by_name(left), _split_by_name(right)
    names = sorted({*first, *second})
    states = [
        merge(first[name], second[name]) if name in first and name in second else (first | second)[name]
        for name in names
    ]
    return _stack_states(names, states)


def _stack_states(names: list[str], states: list[State]) -> State:
    if not names:
        return {"group": np.empty(0, "U1")}
    return {"group": np.asarray(names, np.str_)} | {
        key: np.stack([state[key] for state in states]) for key in states[0]
    }


def _split_by_name(state: State) -> dict[str, State]:
    arrays = {key: value for key, value in state.items() if key != "group"}
    return {name: {key: value[at] for key, value in arrays.items()} for at, name in enumerate(state["group"].tolist())}


def over_groups(
    combine: Callable[[Floats, Any], Any],
    *,
    per_row: Callable[[Answers, Values, Task], Floats] | None = None,
    update: Callable[[Answers, Values, Task], State] | None = None,
    merge: Callable[[State, State], State] = add_states,
    compute: Callable[[State], float] | None = None,
) -> tuple[Callable[..., tuple[str, ...]], Callable[..., State], Callable[..., State], Callable[..., float]]:
    """Return `fields`, `update`, `merge` and `compute` of a metric over groups: `combine(values, options)` of the
    values of all groups, (G,); NaN if there are no groups.

    The value of a group is the mean of `per_row` over its rows, or that of the metric `update`, `merge` and
    `compute`."""

    def update_groups(answers: Answers, truth: Values, task: Task, columns: Columns, options: Any) -> State:
        groups = find_memberships(options, truth, task, columns)
        if per_row is not None:
            return sum_by_group(per_row(answers, truth, task), groups)
        assert update is not None
        own = update
        return split_by_group(groups, lambda rows: own(answers[rows], truth[rows], task))

    def merge_groups(left: State, right: State) -> State:
        return add_group_sums(left, right) if per_row is not None else merge_group_states(left, right, merge)

    def compute_groups(state: State, options: Any) -> float:
        if not len(state["group"]):
            return float("nan")
        if compute is None:
            return float(combine(compute_group_means(state), options))
        return float(combine(np.array([compute(group) for group in _split_by_name(state).values()]), options))

    return list_group_fields, update_groups, merge_groups, compute_groups
