"""Relative corruption error: the error that corruptions add, relative to the error that they add to a reference model.

With E_c a model's error under corruption c (the mean over severities), E its error on clean rows, and R_c and R those
of the reference,

    relative mCE = mean_c (E_c - E) / (R_c - R)

(Hendrycks and Dietterich, ICLR 2019; there multiplied by 100). It is a difference of two terms, each linear in the
model's errors: mean_c E_c / (R_c - R) on corrupted rows and E mean_c 1 / (R_c - R) on clean rows. Rows of both kinds
give the difference, rows of one kind the respective term: if ID rows are clean and OOD rows corrupted, the relative mCE
is OOD minus ID, the negative gap.

`reference` gives R_c by corruption and `reference_clean` R. Clean rows are those whose corruption is `clean`. NaN if a
corruption of the reference has no rows, unless all rows are clean. A row without an answer is wrong.
"""

from __future__ import annotations

from math import inf
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from . import _groups
from . import mean_corruption_error as _mean
from ._base import State

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (-inf, inf)
GROUPS = "fixed"

fields, update = _mean.fields, _mean.update
merge = _groups.add_group_sums


class Options(_mean.Options):
    """The options of mean_corruption_error, and the reference's error on clean rows, which must be below all others."""

    reference: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field(min_length=1)
    reference_clean: float = Field(ge=0, lt=1)

    @model_validator(mode="after")
    def _worse(self) -> Options:
        better = sorted(name for name, error in self.reference.items() if error <= self.reference_clean)
        if better:
            raise ValueError(f"the error of the reference under {better[0]} must be above its error on clean rows")
        return self


OPTIONS = Options


def compute(state: State, options: Options) -> float:
    """Compute the mean over corruptions; NaN if some of them have no rows and others have."""
    known_errors = _mean.compute_corruption_errors(state)
    clean = known_errors.pop(options.clean, None)
    added = {name: error - options.reference_clean for name, error in sorted(options.reference.items())}
    if known_errors and not added.keys() <= known_errors.keys():
        return float("nan")
    if not known_errors and clean is None:
        return float("nan")
    corrupted = np.array([known_errors.get(name, 0.0) for name in added])
    return float(np.mean((corrupted - (clean or 0.0)) / np.array([*added.values()]) * (1 if known_errors else -1)))
