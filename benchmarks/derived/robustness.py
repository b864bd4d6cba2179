"""Effective robustness: OOD accuracy beyond what in-distribution accuracy predicts.

Across models, OOD accuracy is close to a linear function of ID accuracy on logit axes (Taori et al., NeurIPS 2020) or
probit axes (Miller et al., ICML 2021). The line is fitted by least squares over baselines,

    logit(ood) = intercept + slope logit(id)

and a model's effective robustness is its OOD accuracy minus the line: ood - expit(intercept + slope logit(id)). Since
the logits of 0 and 1 are infinite, every accuracy a over n rows is first replaced by (n a + 1/2) / (n + 1), the
empirical logit with half a right and half a wrong prediction added (Haldane 1956, Anscombe 1956).

The interval has four sources of variance: the OOD rows; the ID rows, by the delta method; the training seeds, by each
seed's own distance from the line, so that effects common to both accuracies cancel; and the line at that ID accuracy,
by the variance of a mean predicted by a regression, with baselines - 2 degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import hypot, log, sqrt, tanh
from typing import Any, ClassVar

import numpy as np

from ...core.errors import FarshiftError
from ..statistics.interval import Estimate, Record, make_estimate
from ..statistics.variance_estimate import VarianceEstimate, estimate_seed_variance

FEWEST = 3
"""A line through two points has no residuals to estimate its uncertainty from."""


@dataclass(frozen=True)
class Point:
    """A baseline's accuracies, in [0, 1], and the number of rows of each."""

    id: float
    ood: float
    id_rows: int
    ood_rows: int


@dataclass(frozen=True)
class Line(Record):
    """The line fitted to `baselines` points on logit axes, and the statistics that determine its uncertainty.

    `scatter`: standard deviation of the baselines about the line, in logits; `centre`, `spread`: mean of their
    logit(id) and the sum of its squared deviations; `least`, `most`: the range of their ID accuracies.
    """

    intercept: float
    slope: float
    scatter: float
    centre: float
    spread: float
    baselines: int
    least: float
    most: float

    DIGITS: ClassVar = 6

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: the line and its baselines."""
        return {name: super(Line, self).to_dict()[name] for name in ("intercept", "slope", "scatter", "baselines")}

    def ood(self, id_logit: float) -> float:
        """Return the OOD accuracy on the line."""
        return _expit(self.intercept + self.slope * id_logit)

    def variance(self, id_logit: float) -> float:
        """Return the variance of the line's height there, in squared logits."""
        return self.scatter**2 * (1 / self.baselines + (id_logit - self.centre) ** 2 / self.spread)


@dataclass(frozen=True)
class Robustness(Record):
    """`value` = ood - `expected`, its 95 % t interval, and the standard errors of its sources.

    `extrapolated`: whether the model's ID accuracy is outside the range of the baselines, so that the line is
    extrapolated."""

    value: float
    low: float
    high: float
    row_se: float
    seed_se: float | None
    line_se: float
    expected: float
    extrapolated: bool
    line: Line

    DIGITS: ClassVar = 6


def fit_line(baselines: Sequence[Point]) -> Line:
    """Fit the line to the baselines; raises `FarshiftError` if fewer than three differ in ID accuracy."""
    different = len({point.id for point in baselines})
    if different < FEWEST:
        raise FarshiftError(
            f"effective robustness: {different} of {len(baselines)} baselines differ in ID accuracy, but the line "
            f"requires {FEWEST}: add baselines"
        )
    x = np.array([_logit(point.id, point.id_rows) for point in baselines])
    y = np.array([_logit(point.ood, point.ood_rows) for point in baselines])
    centre, count = float(x.mean()), len(baselines)
    spread = float(np.sum((x - centre) ** 2))
    slope = float(np.sum((x - centre) * (y - y.mean()))) / spread
    intercept = float(y.mean()) - slope * centre
    scatter = sqrt(float(np.sum((y - intercept - slope * x) ** 2)) / (count - 2))
    ids = [point.id for point in baselines]
    return Line(intercept, slope, scatter, centre, spread, count, min(ids), max(ids))


def compute_effective_robustness(line: Line, id: Estimate, ood: Estimate) -> Robustness:
    """Compute how far a model's OOD accuracy is above the line, in units of accuracy; negative if below.

    `id`, `ood`: the model's accuracies, for the same seeds in the same order, on different rows."""
    at = _logit(id.value, id.rows)
    expected, adjusted = line.ood(at), _expit(at)
    # Derivatives of the expected OOD accuracy with respect to the line's height in logits and to the ID accuracy.
    by_height = expected * (1 - expected)
    by_id = by_height * line.slope / (adjusted * (1 - adjusted)) * id.rows / (id.rows + 1)
    noise = [
        VarianceEstimate(ood.row_se**2, min(ood.row_df, ood.rows)),
        VarianceEstimate((by_id * id.row_se) ** 2, min(id.row_df, id.rows)),
        VarianceEstimate(by_height**2 * line.variance(at), line.baselines - 2),
    ]
    per_seed = [b - line.ood(_logit(a, id.rows)) for a, b in zip(id.per_seed, ood.per_seed, strict=True)]
    value = ood.value - expected
    above = make_estimate(value, noise, [estimate_seed_variance(per_seed)], (-1.0, 1.0), per_seed=per_seed)
    row_se, line_se = hypot(ood.row_se, by_id * id.row_se), sqrt(noise[2].variance)
    outside = not line.least <= id.value <= line.most
    return Robustness(value, above.low, above.high, row_se, above.seed_se, line_se, expected, outside, line)


def _logit(accuracy: float, rows: int) -> float:
    return log((rows * accuracy + 0.5) / (rows * (1 - accuracy) + 0.5))


def _expit(logit: float) -> float:
    # Equal to 1 / (1 + exp(-logit)), which would overflow.
    return (1 + tanh(logit / 2)) / 2
