"""Gap recovered: the share of the gap between two scores that a model closes, (x - floor) / (ceiling - floor).

The same formula has several names:

- supervision gap recovered (Hase et al., ACL 2024): x trained on easy data, floor untrained, ceiling trained on hard
  data, all evaluated on hard rows;
- performance gap recovered (Burns et al. 2023): weak-to-strong student, weak supervisor, strong ceiling;
- with corrupted labels: a method, standard training on the corrupted labels, standard training on the true labels;
- with a noise ceiling: the ceiling is the best score that noisy labels allow.

It is 0 at the floor and 1 at the ceiling, and is not clipped. The 95 % interval is Fieller's (Journal of the Royal
Statistical Society B, 1954): the ratios r that a t test of (x - floor) - r (ceiling - floor) = 0 does not reject.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ..statistics.interval import NotAvailable, Record
from ..statistics.sample import Sample
from ..statistics.variance_estimate import (
    LEVEL,
    VarianceEstimate,
    estimate_seed_variance,
    find_t_quantiles,
    sum_variances,
)

FEWEST_SE = 2.0
"""A gap below this many standard errors is too small for a share of it to be meaningful."""


@dataclass(frozen=True)
class Recovered(Record):
    """The recovered share of the gap, its 95 % Fieller interval, and the three scores."""

    value: float
    low: float
    high: float
    x: float
    floor: float
    ceiling: float

    DIGITS: ClassVar = 6


def compute_gap_recovered_on_rows(x: Sample, floor: Sample, ceiling: Sample) -> Recovered | NotAvailable:
    """Compute the recovered share of the gap from three models evaluated on the same rows; higher is better.

    Rows are paired, so the common difficulty of a row cancels; the models' seeds are independent."""
    models = (x, floor, ceiling)
    values = np.array([fsum(model.per_seed) / len(model.per_seed) for model in models])
    gain, gap, rest = (
        left.pooled().minus(right.pooled()).spread() for left, right in ((x, floor), (ceiling, floor), (ceiling, x))
    )
    shared = (gain.variance + gap.variance - rest.variance) / 2
    sources = [(np.array([[gain.variance, shared], [shared, gap.variance]]), gain.df)]
    for model, weights in zip(models, CONTRASTS.T, strict=True):
        if spread := estimate_seed_variance(model.per_seed):
            sources.append((spread.variance * np.outer(weights, weights), spread.df))
    gain_value, gap_value = CONTRASTS @ values
    weights = np.array([gap_value, -gain_value])
    # Satterthwaite's degrees of freedom of Fieller's t statistic at the estimated ratio.
    df = sum_variances([VarianceEstimate(float(weights @ matrix @ weights), df) for matrix, df in sources]).df
    return compute_fieller_interval(values, np.sum([matrix for matrix, _ in sources], axis=0), df)


CONTRASTS = np.array([[1.0, -1.0, 0.0], [0.0, -1.0, 1.0]])
"""The contrasts x - floor and ceiling - floor as a matrix on (x, floor, ceiling)."""

Matrix = NDArray[np.float64]


def compute_fieller_interval(values: NDArray[np.float64], covariance: Matrix, df: float) -> Recovered | NotAvailable:
    """Compute the share and its interval. values: (3,): x, floor, ceiling; higher is better. covariance: (2, 2), of
    x - floor and ceiling - floor, with `df` degrees of freedom."""
    if not (np.isfinite(values).all() and np.isfinite(covariance).all()):
        return NotAvailable("a score is not defined, or not defined on some subsets of the rows")
    x, floor, ceiling = values.tolist()
    gain, gap = x - floor, ceiling - floor
    t, se = float(find_t_quantiles(1 - LEVEL, df)), sqrt(covariance[1, 1])
    # If the gap is below t standard errors, the set of ratios that are not rejected is unbounded.
    if not gap > max(FEWEST_SE, t) * se:
        return NotAvailable(
            f"the ceiling {ceiling:.3f} is too close to the floor {floor:.3f}: "
            f"a gap of {gap:.3f} with a standard error of {se:.3f}"
        )
    a = gap**2 - t**2 * covariance[1, 1]
    b = gap * gain - t**2 * covariance[0, 1]
    c = gain**2 - t**2 * covariance[0, 0]
    reach = sqrt(max(0.0, b**2 - a * c))
    return Recovered(gain / gap, float(b - reach) / a, float(b + reach) / a, x, floor, ceiling)
