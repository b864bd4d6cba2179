"""Mean corruption error: the mean over corruptions of the error, relative to that of a reference model.

With E_sc the error rate under corruption c at severity s, and R_c the reference's mean error over severities,

    CE_c = mean_s E_sc / R_c      mCE = mean_c CE_c

(Hendrycks and Dietterich, "Benchmarking Neural Network Robustness to Common Corruptions and Perturbations", ICLR 2019,
where the reference is AlexNet and the value is multiplied by 100). `reference` gives R_c for each corruption to average
over; without it, R_c is 1 and all corruptions are averaged, as is common for CIFAR-10-C. Rows whose corruption is
`clean` do not count. NaN if a corruption of the reference has no rows. Checked against `compute_mce` in imagenet.py of
google-research/augmix. If rows have no severity, E_c is the error under c. A row without an answer is wrong.
"""

from __future__ import annotations

from math import inf
from typing import Annotated

import numpy as np
from pydantic import Field

from . import _groups
from ._base import Answers, Columns, State, StrictOptions, Task, Values
from .accuracy import per_row as _right

VERSION = 1
TASKS = ("classification",)
NEEDS = "prediction"
BETTER = "lower"
BOUNDS = (0.0, inf)
GROUPS = "fixed"

merge = _groups.add_group_sums


class Options(StrictOptions):
    """The fields with the corruption and severity of each row, and the errors of the reference."""

    corruption: str
    severity: str | None = None
    clean: str = "none"
    reference: dict[str, Annotated[float, Field(gt=0, le=1)]] = Field({})

    @property
    def by(self) -> list[str]:
        return [self.corruption] if self.severity is None else [self.corruption, self.severity]

    @property
    def without(self) -> list[str]:
        return []


OPTIONS = Options


def fields(options: Options) -> tuple[str, ...]:
    """Return the fields with corruption and severity."""
    return tuple(options.by)


def update(answers: Answers, truth: Values, task: Task, columns: Columns, options: Options) -> State:
    """Count the wrong rows and all rows of each corruption and severity (`_groups.sum_by_group`)."""
    return _groups.sum_by_group(
        1 - _right(answers, truth, task), _groups.find_memberships(options, truth, task, columns)
    )


def compute_corruption_errors(state: State) -> dict[str, float]:
    """Compute the error under each corruption: the mean over its severities."""
    at: dict[str, list[float]] = {}
    for name, error in zip(state["group"].tolist(), _groups.compute_group_means(state).tolist(), strict=True):
        at.setdefault(name.rsplit(", ", 1)[0], []).append(error)
    return {name: float(np.mean(severity_errors)) for name, severity_errors in at.items()}


def compute(state: State, options: Options) -> float:
    """Compute the mean over corruptions; NaN if one of them has no rows."""
    known_errors = {name: error for name, error in compute_corruption_errors(state).items() if name != options.clean}
    reference = options.reference or dict.fromkeys(known_errors, 1.0)
    if not reference or not reference.keys() <= known_errors.keys():
        return float("nan")
    return float(np.mean([known_errors[name] / reference[name] for name in sorted(reference)]))
