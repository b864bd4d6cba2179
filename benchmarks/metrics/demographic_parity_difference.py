"""Demographic parity difference: how far apart the rates are at which two groups are predicted to be positive.

    max over groups g, h of  P(prediction = positive | g) - P(prediction = positive | h)

0 if every group is predicted positive as often; it does not depend on the true classes. Agarwal, Beygelzimer, Dudik,
Langford and Wallach, "A Reductions Approach to Fair Classification" (ICML 2018, arXiv:1803.02453), definition 1, as the
difference that fairlearn reports. Groups are those of `by` (`_groups.py`), and `positive` is a class (1). A constant
prediction has 0: read it beside a metric of accuracy. NaN with fewer than two groups. Without differences the value on
few rows is above 0, the more groups the further. A row without an answer counts against the difference on either side.
"""

from __future__ import annotations

from . import _groups
from ._base import State, add_states
from ._selection_rates import Options, count_selected, find_largest_difference

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (0.0, 1.0)
OPTIONS = Options
GROUPS = "fixed"
SMOOTH = False

fields = _groups.list_group_fields
update = count_selected


def merge(left: State, right: State) -> State:
    """Merge the counts of both states by group."""
    return _groups.merge_group_states(left, right, add_states)


def compute(state: State, options: Options) -> float:
    """Compute the largest difference; NaN with fewer than two groups."""
    if not len(state["group"]):
        return float("nan")
    return find_largest_difference(*(state[name].sum(axis=1) for name in ("selected", "lost", "rows")))
