"""Groups of rows that a metric is taken over: which rows are in which, and sums by group.

Groups are made of fields of the rows (a region, a user), which need not be what the split groups its rows by, and of
the label. A row may be in no group, in one, or in several: the eight identities of CivilComments overlap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ..model import Columns, Task
from ._tally import State

if TYPE_CHECKING:
    from collections.abc import Callable

HAS = 0.5
"""From which value on a row has what a field of `of` says: the threshold of WILDS' CivilComments, on shares of raters;
of fields of 0 and 1 it is 1."""


class Grouping(Protocol):
    """What groups are made of (`Groups`)."""

    @property
    def by(self) -> list[str]: ...
    @property
    def without(self) -> list[str]: ...


class Groups(BaseModel):
    """`by`: fields; there is a group for each combination of their values, which is its name ("Asia"; "1, 0").
    `without`: names of groups that do not count."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    by: list[str] = Field(min_length=1)
    without: list[str] = []


class OverlappingGroups(Groups):
    """`of`: fields each of which is a group of the rows that have it (a value of `HAS` or more), crossed with the
    groups of `by` ("male, 1")."""

    by: list[str] = []
    of: list[str] = []

    @model_validator(mode="after")
    def _some(self) -> OverlappingGroups:
        if not self.by and not self.of:
            raise ValueError("groups are made of the fields of `by`, of those of `of`, or of both: name one")
        return self


def list_group_fields(options: Grouping) -> tuple[str, ...]:
    """The fields that these groups are made of."""
    return (*getattr(options, "of", ()), *options.by)


def find_memberships(options: Grouping, truth: NDArray[Any], task: Task, columns: Columns) -> NDArray[np.str_]:
    """The groups of each row, by name, shape (n, K), "" where there is none; K is the most that a row may be in.

    A field that is the task's label is the label that rows are held against."""

    def column(name: str) -> NDArray[Any]:
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


def _format_names(values: NDArray[Any]) -> NDArray[np.str_]:
    """Values as texts, shape (n,)."""
    return np.asarray([str(value) for value in values.tolist()], np.str_)


def _join_texts(parts: list[NDArray[np.str_]]) -> NDArray[np.str_]:
    """The texts of each row with ", " between, shape (n,). Put together once for each combination that occurs."""
    radix = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        values, inverse = np.unique(part, return_inverse=True)
        radix = radix * len(values) + inverse
    _, first, codes = np.unique(radix, return_index=True, return_inverse=True)
    names = [", ".join(str(part[row]) for part in parts) for row in first.tolist()]
    return np.asarray(names, np.str_)[codes]


def sum_by_group(values: NDArray[np.float64], groups: NDArray[np.str_]) -> State:
    """Of values (n,) in `groups` (n, K): `group`, the names of those that occur, sorted, shape (G,); the `sum` of the
    values in each, float64, and its `rows`, int64. A row counts in each of its groups."""
    row, column = np.nonzero(groups != "")
    names, codes = np.unique(groups[row, column], return_inverse=True)
    return {
        "group": names,
        "sum": np.bincount(codes, values[row], len(names)),
        "rows": np.bincount(codes, minlength=len(names)),
    }


def add_group_sums(left: State, right: State) -> State:
    """The sums of both."""
    names, codes = np.unique(np.concatenate([left["group"], right["group"]]), return_inverse=True)
    return {
        "group": names,
        "sum": np.bincount(codes, np.concatenate([left["sum"], right["sum"]]), len(names)),
        "rows": np.bincount(codes, np.concatenate([left["rows"], right["rows"]]), len(names)).astype(np.int64),
    }


def compute_group_means(state: State) -> NDArray[np.float64]:
    """The mean of each group's rows, shape (G,)."""
    group_means: NDArray[np.float64] = state["sum"] / state["rows"]
    return group_means


def split_by_group(groups: NDArray[np.str_], update: Callable[[NDArray[np.int64]], State]) -> State:
    """The state of each group's rows, `update(positions)`, stacked by the groups' names, sorted: `group` (G,), and each
    array of the states with an axis for the group in front."""
    names = sorted(set(groups[groups != ""].tolist()))
    states = [update(np.flatnonzero((groups == name).any(axis=1))) for name in names]
    return _stack_states(names, states)


def merge_group_states(left: State, right: State, merge: Callable[[State, State], State]) -> State:
    """Two such states put together, by a `merge` of the states of one group."""
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


def compute_by_group(state: State, compute: Callable[[State], float]) -> NDArray[np.float64]:
    """What `compute` gives for each group of such a state, shape (G,)."""
    return np.array([compute(group_state) for group_state in _split_by_name(state).values()])
