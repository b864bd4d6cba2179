"""Counterfactual flip rate: the share of people whose prediction depends on their sensitive attribute.

Rows with one value of `person` are a person as observed, and as they would have been with another sensitive attribute
and the same exogenous variables. A predictor is counterfactually fair if it gives all of them one class (Kusner,
Loftus, Russell and Silva, "Counterfactual Fairness", NeurIPS 2017, arXiv:1703.06856, definition 5, for deterministic
predictors); the value is the share of people for whom it does not. It is 0 for a constant prediction: read it beside a
metric of accuracy.

People with one row do not count; NaN if all have one. A row without an answer counts as another class.
"""

from __future__ import annotations

import numpy as np

from ._base import Answers, Columns, State, StrictOptions, Task, Values, concatenate_states

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (0.0, 1.0)
SMOOTH = False


class Options(StrictOptions):
    """`person`: the field that the rows of one person share, integers or text."""

    person: str


OPTIONS = Options


def fields(options: Options) -> tuple[str, ...]:
    """Return the field of the person."""
    return (options.person,)


def update(answers: Answers, truth: Values, task: Task, columns: Columns, options: Options) -> State:
    """Find for each `person`, sorted, the least and the largest predicted class (`least`, `most`) and the number of
    `rows`, all (P,)."""
    person, given = np.asarray(columns[options.person]).astype(np.str_), answers.prediction.astype(np.int64)
    return _reduce({"person": person, "least": given, "most": given, "rows": np.ones(len(person), np.int64)})


def merge(left: State, right: State) -> State:
    """Merge two states by person."""
    return _reduce(concatenate_states(left, right))


def _reduce(state: State) -> State:
    """Combine the entries of each person."""
    names, codes = np.unique(state["person"], return_inverse=True)
    least, most = (np.full(len(names), bound, np.int64) for bound in (np.iinfo(np.int64).max, -1))
    np.minimum.at(least, codes, state["least"])
    np.maximum.at(most, codes, state["most"])
    rows = np.zeros(len(names), np.int64)
    np.add.at(rows, codes, state["rows"])
    return {"person": names, "least": least, "most": most, "rows": rows}


def compute(state: State, options: Options) -> float:
    """Compute the share of people with several rows whose predictions differ; NaN if there are none."""
    several = state["rows"] > 1
    flipped = (state["least"] < state["most"]) | (state["least"] < 0)
    return float(flipped[several].mean()) if several.any() else float("nan")
