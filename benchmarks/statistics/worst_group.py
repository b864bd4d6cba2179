"""Selection-adjusted inference for the worst group.

The minimum of G noisy means is biased below the minimum true mean, the more so the more groups are nearly as bad. This
module computes

- `bias`: the average difference between the minimum in a parametric bootstrap (each group's mean with normal noise of
  its variance) and the observed minimum, an estimate of the selection bias.
- `low`, `high`: an interval for the minimum true mean. low is the minimum of the groups' lower limits, which is valid
  because that of the truly worst group is. high is the minimum of upper limits that hold simultaneously for all groups
  that may be the worst; these are selected first, with a tenth of the error (after Romano, Shaikh and Wolf,
  Econometrica 2014). Percentiles of the bootstrapped minimum are not a valid interval: they include the bias twice.

Training seeds affect all groups, which makes `high` somewhat conservative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .interval import round_numbers
from .ranks import Better
from .sample import RowScores
from .variance_estimate import (
    LEVEL,
    VarianceEstimate,
    add_variances,
    compute_average,
    estimate_seed_variance,
    find_t_quantiles,
    make_generator,
)

RESAMPLES = 2_000
_SELECTING = 0.1
"""The share of the error that is used to select the groups that may be the worst."""


@dataclass(frozen=True)
class WorstGroup:
    """The worst group: its index `group`, its mean `value`, an interval, and the selection `bias`."""

    group: int
    value: float
    low: float
    high: float
    bias: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON with six decimals, or four for simulated values."""
        exact = {"value": self.value, "low": self.low, "high": self.high}
        return round_numbers(exact) | round_numbers({"bias": self.bias}, 4)


def estimate_worst_group(
    sample: RowScores,
    groups: NDArray[np.int64],
    better: Better = "higher",
    resamples: int = RESAMPLES,
) -> WorstGroup:
    """Estimate the worst of the groups 0 .. G - 1, from the group of each row, `groups` (rows,); each has at least two
    rows.

    Clusters of the sample are within groups; rows of a group that is a single cluster are treated as independent."""
    sizes = np.bincount(groups)
    if len(groups) != sample.rows or sizes.min() < 2:
        raise ValueError("every row must have a group, and every group at least two rows")
    parts = np.split(np.argsort(groups, kind="stable"), np.cumsum(sizes)[:-1])
    samples = [sample.select(part) for part in parts]
    rows = [group.spread() for group in samples]
    seeds = [estimate_seed_variance(group.per_seed) or VarianceEstimate(0.0, 1) for group in samples]
    spreads = [add_variances(pair) for pair in zip(rows, seeds, strict=True)]
    se, df = np.sqrt([spread.variance for spread in spreads]), np.array([spread.df for spread in spreads])
    sign = 1.0 if better == "higher" else -1.0
    means = sign * np.array([compute_average(group.per_seed) for group in samples])
    error = 1 - LEVEL

    def reach(tail: float) -> NDArray[np.float64]:
        return find_t_quantiles(tail, df) * se

    selecting = reach(-np.expm1(np.log1p(-error * _SELECTING) / len(means)))
    possible = means - selecting <= (means + selecting).min()
    joint = reach(-2 * np.expm1(np.log1p(-error * (0.5 - _SELECTING)) / np.count_nonzero(possible)))
    low, high = float((means - reach(error)).min()), float((means + joint)[possible].min())
    bounds = sorted(sign * end for end in sample.bounds)
    first, last = sorted((sign * max(low, bounds[0]), sign * min(high, bounds[1])))
    noise = np.sqrt([row.variance for row in rows]) * make_generator("worst group").standard_normal(
        (resamples, len(means))
    )
    bias = (means + noise).min(axis=1).mean() - means.min()
    return WorstGroup(int(means.argmin()), float(sign * means.min()), first, last, float(sign * bias))
