"""Selection-adjusted inference for the worst group.

The minimum of G noisy means is biased below the minimum true mean, the more so the more groups are nearly as bad. This
module computes

- `bias`: the average difference between the minimum in a stratified bootstrap (each group resampled separately, from
its
  counts) and the observed minimum, an estimate of the selection bias.
- `low`, `high`: an interval for the minimum true mean. low is the minimum of the groups' lower limits, which is valid
  because that of the truly worst group is. high is the minimum of upper limits that hold simultaneously for all groups
  that may be the worst; these are selected first, with a tenth of the error (after Romano, Shaikh and Wolf,
  Econometrica 2014). Percentiles of the bootstrapped minimum are not a valid interval: they include the bias twice.
- `groups`: simultaneous intervals of all groups. Groups are independent samples of rows, for which the max-t test needs
  no simulation: each interval uses the t quantile at level^(1 / G) (Sidak, JASA 1967) with its own degrees of freedom.
  Training seeds affect all groups, which makes these intervals and `high` somewhat conservative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .confidence_interval import LEVEL, add_variances
from .max_t import find_t_quantiles
from .ranks import Better
from .sample import RowScores, has_finite_ends
from .streams import make_generator
from .variance_estimate import VarianceEstimate, compute_average, estimate_seed_variance

RESAMPLES = 2_000
_SELECTING = 0.1
"""The share of the error that is used to select the groups that may be the worst."""

_FEW_VALUES = 64

Array = NDArray[np.float64]


@dataclass(frozen=True)
class WorstGroup:
    """The worst group: its index `group`, its mean `value`, the selection `bias`, and an interval.

    chance (G,): the share of resamples in which each group is the worst. means, lows, highs (G,): all groups with
    simultaneous intervals."""

    group: int
    value: float
    low: float
    high: float
    bias: float
    chance: Array
    means: Array
    lows: Array
    highs: Array

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON with six decimals, or four for simulated values."""
        exact = {"value": self.value, "low": self.low, "high": self.high}
        return {name: round(number, 6) + 0.0 for name, number in exact.items()} | {"bias": round(self.bias, 4) + 0.0}


@dataclass(frozen=True)
class _Groups:
    """means (G,), se (G,), df (G,), and bootstrap noise around the means, (resamples, G)."""

    means: Array
    se: Array
    df: Array
    noise: Array


def estimate_worst_group(
    sample: RowScores,
    groups: NDArray[np.int64],
    better: Better = "higher",
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    stream: str = "worst group",
) -> WorstGroup:
    """Estimate the worst of the groups 0 .. G - 1, from the group of each row, `groups` (rows,); each has at least two
    rows.

    Clusters of the sample are within groups; rows of a group that is a single cluster are treated as independent."""
    measured_groups = _measure_groups(sample, groups, resamples, stream)
    sign = 1.0 if better == "higher" else -1.0
    means, bounds = sign * measured_groups.means, sorted(sign * end for end in sample.bounds)
    error, count = 1 - level, len(means)

    def reach(tail: float) -> Array:
        return find_t_quantiles(tail, measured_groups.df) * measured_groups.se

    own = reach(error)
    selecting = reach(-np.expm1(np.log1p(-error * _SELECTING) / count))
    possible = means - selecting <= (means + selecting).min()
    one_sided = error * (0.5 - _SELECTING)
    joint = reach(-2 * np.expm1(np.log1p(-one_sided) / np.count_nonzero(possible)))
    low, high = float((means - own).min()), float((means + joint)[possible].min())
    all_groups = reach(-np.expm1(np.log(level) / count))
    resampled_means = means + sign * measured_groups.noise
    ends = sorted((sign * max(low, bounds[0]), sign * min(high, bounds[1])))
    return WorstGroup(
        group=int(means.argmin()),
        value=float(measured_groups.means[means.argmin()]),
        low=ends[0],
        high=ends[1],
        bias=float(sign * (resampled_means.min(axis=1).mean() - means.min())),
        chance=np.bincount(resampled_means.argmin(axis=1), minlength=count) / resamples,
        means=measured_groups.means,
        lows=np.maximum(measured_groups.means - all_groups, sample.bounds[0]),
        highs=np.minimum(measured_groups.means + all_groups, sample.bounds[1]),
    )


def _measure_groups(sample: RowScores, groups: NDArray[np.int64], resamples: int, stream: str) -> _Groups:
    sizes = np.bincount(groups)
    if len(groups) != sample.rows or sizes.min() < 2:
        raise ValueError("every row must have a group, and every group at least two rows")
    means = (np.stack([np.bincount(groups, row) for row in sample.scores]) / sizes).T.tolist()
    table = None
    if sample.clusters is None or _has_single_cluster_each(sample.clusters, groups):
        table = _make_table(sample, groups, sizes)
    rows = _estimate_from_rows(sample, groups) if table is None else _estimate_from_counts(table, sample.bounds)
    spreads = [
        add_variances([row, estimate_seed_variance(own) or VarianceEstimate(0.0, 1)])
        for row, own in zip(rows, means, strict=True)
    ]
    source = make_generator(stream)
    if table is None:  # the normal limit of resampling many rows or clusters
        noise = np.sqrt([row.variance for row in rows]) * source.standard_normal((resamples, len(sizes)))
    else:
        resampled = source.multinomial(sizes, table.counts / sizes[:, None], (resamples, len(sizes)))
        noise = (resampled @ table.worth - table.counts @ table.worth) / sizes
    return _Groups(
        means=np.array([compute_average(own) for own in means]),
        se=np.sqrt([spread.variance for spread in spreads]),
        df=np.array([spread.df for spread in spreads]),
        noise=noise,
    )


def _has_single_cluster_each(clusters: NDArray[np.int64], groups: NDArray[np.int64]) -> bool:
    pairs = np.unique(groups.astype(np.int64) * (int(clusters.max()) + 1) + clusters)
    return len(pairs) == int(groups.max()) + 1


@dataclass(frozen=True)
class _Table:
    """The number of times that each score, worth (K,), occurs in each group, counts (G, K)."""

    counts: NDArray[np.int64]
    worth: Array


def _make_table(sample: RowScores, groups: NDArray[np.int64], sizes: NDArray[np.int64]) -> _Table | None:
    """Tabulate the scores of each group; None unless they are means of right and wrong predictions over few seeds."""
    right = sample.scores[0] if len(sample.scores) == 1 else sample.scores.sum(axis=0)
    if not 0 <= right.min() <= right.max() < _FEW_VALUES:
        return None
    codes = right.astype(np.int64)
    if not (codes == right).all():
        return None
    top = int(codes.max()) + 1
    counts = np.bincount(groups * top + codes, minlength=len(sizes) * top).reshape(-1, top)
    return _Table(counts, np.arange(top) / len(sample.scores))


def _estimate_from_counts(table: _Table, bounds: tuple[float, float]) -> list[VarianceEstimate]:
    """Estimate the row component of each group's variance, with one more row at each end of the scale (as in
    `variance_estimate.estimate_row_variance`)."""
    ends = np.array(bounds if has_finite_ends(bounds) else ())
    counts = np.concatenate([table.counts, np.ones((len(table.counts), len(ends)))], axis=1)
    worth = np.concatenate([table.worth, ends])
    n = counts.sum(axis=1)
    squares = (counts * (worth - (counts @ worth / n)[:, None]) ** 2).sum(axis=1)
    return [VarianceEstimate(*pair) for pair in zip((squares / (n - 1) / n).tolist(), (n - 1).tolist(), strict=True)]


def _estimate_from_rows(sample: RowScores, groups: NDArray[np.int64]) -> list[VarianceEstimate]:
    order = np.argsort(groups, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(groups))[:-1])
    return [sample.select(part).spread() for part in parts]
