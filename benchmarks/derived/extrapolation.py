"""Extrapolation along severity: two summaries of the curve of scores over severity, and the valley of the gap.

`area`: the mean height of the curve over the range of severities: the trapezoid rule on the mean score at each
severity, divided by (last - first severity). It is 1 if every prediction is right.

`half`: the severity at which the score first falls to half of its in-distribution level, the mean score of the
in-distribution rows. It is computed from the non-increasing fit to the curve, so that a single noisy severity does not
determine it; between neighbouring severities the fit is linear.

Scores lie in [0, 1], and higher is better. The row variance of `area` is estimated by leaving out one group of rows at
a time, that of `half`, which is discontinuous where the fit pools severities, by balanced half-samples; seeds are left
out one at a time. In simulations the 95 % intervals cover 92 to 97 %.

The generalisation valley and its critical complexity, at which the gap is largest: with in-distribution and
out-of-distribution rows at the same levels of complexity, the gap ID - OOD first grows with complexity and then
shrinks, as the in-distribution score falls too; the level of its peak is the critical complexity
(Qi et al., "Quantifying Generalization Complexity for Large Language Models", ICLR 2025). Unlike in the paper, negative
gaps are not clipped at zero, which would bias every level with a small true gap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ..statistics.clusters import INDEPENDENT, Clustering
from ..statistics.interval import Estimate, NotAvailable, Record, estimate_gap, make_estimate
from ..statistics.sample import Sample, Scores
from ..statistics.variance_estimate import (
    VarianceEstimate,
    estimate_end_variance,
    estimate_half_sample_variance,
    estimate_jackknife_variance,
    make_balanced_halves,
)

Selection: TypeAlias = "NDArray[np.bool_] | slice"


@dataclass(frozen=True)
class Curve:
    """The mean `score` of `rows` rows at each `severity`, ascending, all of shape (K,); and the in-distribution
    `level`, the mean score of `level_rows` rows (NaN if there are none)."""

    severity: NDArray[np.float64]
    score: NDArray[np.float64]
    rows: NDArray[np.int64]
    level: float
    level_rows: int


@dataclass(frozen=True)
class Tally:
    """Sums over rows, sufficient for the curve of any seeds or any groups of rows without another pass over the rows.

    severity: (K,), ascending; rows: (K, groups), how many; sums: (seeds, K, groups), of their scores;
    level_rows: (groups,), how many in-distribution rows; level_sums: (seeds, groups), of their scores.
    """

    severity: NDArray[np.float64]
    rows: NDArray[np.int64]
    sums: NDArray[np.float64]
    level_rows: NDArray[np.int64]
    level_sums: NDArray[np.float64]

    def curve(self, seeds: Selection = slice(None), groups: Selection = slice(None)) -> Curve:
        """Return the curve of some seeds and some groups of rows, by masks of shape (seeds,) and (groups,)."""
        sums, level_sums = self.sums[seeds][:, :, groups], self.level_sums[seeds][:, groups]
        rows, level_rows = self.rows[:, groups].sum(axis=1), int(self.level_rows[groups].sum())
        occupied = rows > 0
        score = sums.sum(axis=(0, 2))[occupied] / (rows[occupied] * len(sums))
        level = float(level_sums.sum()) / (level_rows * len(sums)) if level_rows else nan
        return Curve(self.severity[occupied], score, rows[occupied], level, level_rows)


def tally_curve(
    severity: NDArray[Any], scores: Scores, inside: NDArray[np.bool_], groups: NDArray[np.int64], most: int
) -> Tally:
    """Sum over n rows: severity (n,), scores (seeds, n), inside (n,): which rows are in-distribution, groups (n,):
    integers; at no more than `most` severities.

    If there are more distinct severities, neighbours are merged into bins with about equal numbers of rows, each at the
    mean severity of its rows."""
    points, point = _join_severities(severity, most)
    names, group = np.unique(groups, return_inverse=True)
    shape = (len(points), len(names))
    cell = point * len(names) + group
    return Tally(
        points,
        np.bincount(cell, minlength=points.size * names.size).reshape(shape),
        np.stack([np.bincount(cell, row, points.size * names.size).reshape(shape) for row in scores]),
        np.bincount(group[inside], minlength=len(names)),
        np.stack([np.bincount(group[inside], row[inside], len(names)) for row in scores]),
    )


def _join_severities(severity: NDArray[Any], most: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the severities of a curve, ascending, and each row's index among them."""
    values, position, counts = np.unique(severity.astype(np.float64), return_inverse=True, return_counts=True)
    if len(values) <= most:
        return values, position
    before = np.cumsum(counts) - counts
    _, joined = np.unique(before * most // len(severity), return_inverse=True)
    means = np.bincount(joined, values * counts) / np.bincount(joined, counts)
    return means, joined[position]


def fit_isotonic(score: NDArray[np.float64], rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Fit the non-increasing curve nearest to `score` in least squares weighted by `rows`, and return it with the
    number of rows that each point's value is the mean of; all of shape (K,).

    Pool-adjacent-violators algorithm (Barlow, Bartholomew, Bremner and Brunk, Statistical Inference under Order
    Restrictions, 1972)."""
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(score, weights=rows, increasing=False)
    return fit.x, np.repeat(fit.weights, np.diff(fit.blocks))


FINE, COARSE = 200, 20
"""The maximum number of points of the curves for `area` and `half`; with more severities, neighbours are merged. The
ends of a continuous severity then do not move outwards as rows are added, and each point has enough rows for the
interval: the non-increasing fit converges slowly if points have few rows."""

ROUNDING = 1e-9
"""Tolerance: a fit above half only by rounding error has fallen to half."""


@dataclass(frozen=True)
class Extrapolation(Record):
    """`area` and `half` of a curve from severity `first` to `last`; `level` is the in-distribution score, None if no
    row is in-distribution; with six decimals."""

    area: Estimate | NotAvailable
    half: Estimate | NotAvailable
    level: float | None
    first: float
    last: float

    RENAMED: ClassVar = {"first": "from", "last": "to"}


def estimate_extrapolation(
    severity: NDArray[Any],
    scores: Scores,
    inside: NDArray[np.bool_],
    groups: NDArray[np.int64],
    clustering: Clustering = INDEPENDENT,
) -> Extrapolation:
    """Estimate `area` and `half` of n rows, each with its 95 % t interval over rows and training seeds.

    severity: (n,), finite; scores: (seeds, n), each in [0, 1]; inside: (n,), which rows are in-distribution;
    groups: (n,), the jackknife group of each row (`statistics.sample.deal_rows`); clustering: of the rows.
    """
    fine, coarse = (tally_curve(severity, scores, inside, groups, most) for most in (FINE, COARSE))
    curve = fine.curve()
    level = None if isnan(curve.level) else round(curve.level, 6)
    first, last = (round(float(end), 6) for end in curve.severity[[0, -1]])
    return Extrapolation(_estimate_area(fine, clustering), _estimate_half(coarse, clustering), level, first, last)


def compute_mean_height(curve: Curve) -> float:
    """Compute the mean height of a curve with at least two points by the trapezoid rule; NaN for a single point."""
    span = float(curve.severity[-1] - curve.severity[0])
    return float(np.trapezoid(curve.score, curve.severity)) / span if span else nan


def find_fall_to_half(curve: Curve) -> tuple[float, VarianceEstimate] | NotAvailable:
    """Find the severity at which the non-increasing fit to `curve` first reaches half of its in-distribution level, and
    the minimum variance if no left-out row moves it."""
    if isnan(curve.level):
        return NotAvailable("no row is in-distribution")
    if curve.level == 0:
        return NotAvailable("the in-distribution score is 0, so half of it is not defined")
    half = curve.level / 2
    fit, rows = fit_isotonic(curve.score, curve.rows)
    fallen = np.flatnonzero(fit <= half * (1 + ROUNDING))
    if not len(fallen):
        return NotAvailable(f"never falls to half: {fit[-1]:.3f} at the last severity, {curve.severity[-1]:g}")
    after = int(fallen[0])
    if after == 0:
        return NotAvailable(f"never above half: {fit[0]:.3f} at the first severity, {curve.severity[0]:g}")
    around = slice(after - 1, after + 1)
    above, below = float(fit[after - 1]), min(float(fit[after]), half)
    step, drop = float(np.diff(curve.severity[around])[0]), above - below
    # Derivatives of the severity with respect to the two fitted scores and the in-distribution level.
    slopes = step / drop * np.array([(half - below) / drop, (above - half) / drop, -0.5])
    noise = estimate_end_variance(
        np.array([above, below, curve.level]), np.array([*rows[around], curve.level_rows]), slopes
    )
    return float(curve.severity[after - 1]) + step * (above - half) / drop, noise


def _estimate_area(sums: Tally, clustering: Clustering) -> Estimate | NotAvailable:
    curve = sums.curve()
    if len(curve.severity) < 2:
        return NotAvailable(f"every row has severity {curve.severity[0]:g}")
    # The effective number of rows of a weighted mean (Kish, Survey Sampling, 1965).
    step = np.diff(curve.severity, prepend=curve.severity[0], append=curve.severity[-1])
    share = (step[:-1] + step[1:]) / 2 / (curve.severity[-1] - curve.severity[0])
    effective = 1 / float(np.sum(share**2 / curve.rows))
    value = compute_mean_height(curve)
    floor = estimate_end_variance(value, effective)

    def estimate_rows(sizes: NDArray[np.int64]) -> VarianceEstimate:
        without = [compute_mean_height(sums.curve(groups=~left_out)) for left_out in np.eye(len(sizes), dtype=np.bool_)]
        return estimate_jackknife_variance(value, np.array(without), sizes)

    return _estimate_statistic(sums, compute_mean_height, estimate_rows, floor, (0.0, 1.0), clustering)


def _estimate_half(sums: Tally, clustering: Clustering) -> Estimate | NotAvailable:
    fall = find_fall_to_half(sums.curve())
    if isinstance(fall, NotAvailable):
        return fall
    value, floor = fall

    def estimate_rows(sizes: NDArray[np.int64]) -> VarianceEstimate:
        halves = make_balanced_halves(len(sizes))
        on_halves = np.array([_find_severity_at_half(sums.curve(groups=half)) for half in halves])
        return estimate_half_sample_variance(value, on_halves, halves, sizes)

    return _estimate_statistic(sums, _find_severity_at_half, estimate_rows, floor, (-inf, inf), clustering)


def _find_severity_at_half(curve: Curve) -> float:
    fall = find_fall_to_half(curve)
    return nan if isinstance(fall, NotAvailable) else fall[0]


def _estimate_statistic(
    sums: Tally,
    statistic: Callable[[Curve], float],
    estimate_rows: Callable[[NDArray[np.int64]], VarianceEstimate],
    floor: VarianceEstimate,
    bounds: tuple[float, float],
    clustering: Clustering,
) -> Estimate | NotAvailable:
    """Estimate the interval of a statistic of the curve; not available if it is undefined without some rows or seeds.
    estimate_rows: its row variance, from the sizes of the groups of rows."""
    sizes: NDArray[np.int64] = sums.rows.sum(axis=0)
    if len(sizes) < 2:
        return NotAvailable("all rows are in one group: no interval")
    value, each, seeds = statistic(sums.curve()), np.eye(len(sums.sums), dtype=np.bool_), None
    if len(each) > 1:
        without = np.array([statistic(sums.curve(seeds=~mask)) for mask in each])
        seeds = estimate_jackknife_variance(value, without, np.ones(len(each), np.int64))
    rows, count = [estimate_rows(sizes), floor], int(sizes.sum())
    estimate = make_estimate(value, rows, [seeds], bounds, row_count=count, seed_count=len(each), clustering=clustering)
    if not estimate.defined:
        return NotAvailable(f"{value:g} on all rows and seeds, but not defined on some subsets: no interval")
    per_seed = tuple(statistic(sums.curve(seeds=mask)) for mask in each)
    return estimate if any(map(isnan, per_seed)) else replace(estimate, per_seed=per_seed)


FEWEST = 3
"""The minimum number of levels: the peak, and one on each side of it."""


@dataclass(frozen=True)
class Valley(Record):
    """The gap at each level, ascending, and the level of the largest gap.

    `peak`: the level of the largest gap, ties to the lowest; None with fewer than three levels.
    `resolved`: whether the interval of its gap is above those of all other levels. Disjoint 95 % intervals are a
    stricter criterion than a 95 % test of the difference, which compensates for selecting the largest of several.
    `bracketed`: whether there are levels on both sides of the peak; if not, the true peak may be outside the range.
    `critical`: the peak if it is resolved.
    """

    gaps: Mapping[float, Estimate]
    peak: float | None
    resolved: bool
    bracketed: bool
    critical: float | NotAvailable

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON with six decimals, levels unrounded."""
        levels = [{"level": level, "gap": estimate.to_dict()} for level, estimate in self.gaps.items()]
        return {"levels": levels} | {name: item for name, item in super().to_dict().items() if name != "gaps"}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Valley:
        """What `to_dict` wrote."""
        return super().from_dict({**record, "gaps": {level["level"]: level["gap"] for level in record["levels"]}})


def find_valley(levels: Mapping[float, tuple[Sample, Sample]]) -> Valley:
    """Find the valley of a model from its ID and OOD samples at each level of complexity; higher scores are better.

    Levels at which the score or its interval is not defined are omitted."""
    measured = {level: estimate_gap(*levels[level]) for level in sorted(levels)}
    gaps = {level: estimate for level, estimate in measured.items() if not isnan(estimate.low)}
    if len(gaps) < FEWEST:
        few = NotAvailable(f"{len(gaps)} levels of complexity have a gap, but a valley requires {FEWEST}")
        return Valley(gaps, None, False, False, few)
    peak = max(gaps, key=lambda level: gaps[level].value)
    rival = max((level for level in gaps if level != peak), key=lambda level: gaps[level].high)
    resolved = gaps[peak].low > gaps[rival].high
    critical = (
        peak if resolved else NotAvailable(f"the peak at {peak:g} does not differ significantly from level {rival:g}")
    )
    return Valley(gaps, peak, resolved, min(gaps) < peak < max(gaps), critical)
