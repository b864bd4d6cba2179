"""How far does a skill carry? Two numbers from the curve of scores over severity.

`area`: the mean height of the curve over the span of severities: the trapezoid rule on the mean score at each severity,
divided by (last - first severity). It is 1 where everything is right.

`half`: the severity at which the score first falls to half of its in-distribution level, the mean score of the
in-distribution rows. It is read off the non-increasing fit to the curve, so that one noisy severity does not decide;
between neighbouring severities the fit is a straight line.

Scores lie in [0, 1], and higher is better. The row noise of `area` comes from leaving out one group of rows at a time,
that of `half`, which jumps where the fit pools severities, from balanced half-samples; seeds are left out one at a
time. In simulations the 95 % intervals cover 92 to 97 %.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf, isnan, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..statistics.clusters import INDEPENDENT, Clustering
from ..statistics.half_samples import estimate_half_sample_variance, make_balanced_halves
from ..statistics.interval import Estimate, compute_interval, read_estimate
from ..statistics.jackknife import estimate_end_variance, estimate_jackknife_variance
from ..statistics.not_available import NotAvailable
from ..statistics.sample import Scores
from ..statistics.variance_estimate import VarianceEstimate
from .curve import Curve, Tally, fit_isotonic, tally_curve

FINE, COARSE = 200, 20
"""The most points of the curves that `area` and `half` are of; where there are more severities, neighbours are joined.
The ends of a continuous severity then do not move outwards with every row more, and the non-increasing fit, which
settles slowly where points have few rows, has enough of them for an interval."""

ROUNDING = 1e-9
"""A fit that only rounding keeps above half has fallen to half."""


@dataclass(frozen=True)
class Extrapolation:
    """`area` and `half` of a curve whose points run from severity `first` to `last`; `level` is the in-distribution
    score, None where no row is in-distribution."""

    area: Estimate | NotAvailable
    half: Estimate | NotAvailable
    level: float | None
    first: float
    last: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; six decimals."""
        return {
            "area": self.area.to_dict(),
            "half": self.half.to_dict(),
            "level": None if self.level is None else round(self.level, 6),
            "from": round(self.first, 6),
            "to": round(self.last, 6),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Extrapolation:
        """What `to_dict` wrote."""
        area, half = (read_estimate(record[name]) for name in ("area", "half"))
        return cls(area, half, record["level"], record["from"], record["to"])


def estimate_extrapolation(
    severity: NDArray[Any],
    scores: Scores,
    inside: NDArray[np.bool_],
    groups: NDArray[np.int64],
    clustering: Clustering = INDEPENDENT,
) -> Extrapolation:
    """`area` and `half` of n rows, each with its 95 % t interval over rows and training seeds.

    severity: (n,), finite; scores: (seeds, n), each in [0, 1]; inside: (n,), which rows are in-distribution;
    groups: (n,), the group of rows that each row is left out with (`statistics.sample.deal_rows`); clustering: of the
    rows.
    """
    fine, coarse = (tally_curve(severity, scores, inside, groups, most) for most in (FINE, COARSE))
    curve = fine.full_curve()
    level = None if isnan(curve.level) else curve.level
    area, half = (
        result if isinstance(result, NotAvailable) else replace(result, clustering=clustering)
        for result in (_estimate_area(fine), _estimate_half(coarse))
    )
    return Extrapolation(area, half, level, float(curve.severity[0]), float(curve.severity[-1]))


def compute_mean_height(curve: Curve) -> float:
    """The mean height of a curve of two points or more, by the trapezoid rule; NaN of a single point."""
    span = float(curve.severity[-1] - curve.severity[0])
    return float(np.trapezoid(curve.score, curve.severity)) / span if span else nan


@dataclass(frozen=True)
class Fall:
    """Where a curve falls to half, and the variance that is left where no row left out moves it."""

    severity: float
    ends: VarianceEstimate


def find_fall_to_half(curve: Curve) -> Fall | NotAvailable:
    """Where the non-increasing fit to `curve` first reaches half of its in-distribution level."""
    if isnan(curve.level):
        return NotAvailable("no row is in-distribution")
    if curve.level == 0:
        return NotAvailable("the in-distribution score is 0, which has no half")
    half = curve.level / 2
    fit, rows = fit_isotonic(curve.score, curve.rows)
    fallen = np.flatnonzero(fit <= half * (1 + ROUNDING))
    if not len(fallen):
        return NotAvailable(f"never falls to half: last severity {curve.severity[-1]:g} at {fit[-1]:.3f}")
    after = int(fallen[0])
    if after == 0:
        return NotAvailable(f"not above half anywhere: first severity {curve.severity[0]:g} at {fit[0]:.3f}")
    around = slice(after - 1, after + 1)
    above, below = float(fit[after - 1]), min(float(fit[after]), half)
    step, drop = float(np.diff(curve.severity[around])[0]), above - below
    # Derivatives of the severity by the two fitted scores and by the in-distribution level.
    slopes = step / drop * np.array([(half - below) / drop, (above - half) / drop, -0.5])
    noise = estimate_end_variance(
        np.array([above, below, curve.level]), np.array([*rows[around], curve.level_rows]), slopes
    )
    return Fall(float(curve.severity[after - 1]) + step * (above - half) / drop, noise)


def _estimate_area(sums: Tally) -> Estimate | NotAvailable:
    curve = sums.full_curve()
    if len(curve.severity) < 2:
        return NotAvailable(f"every row has severity {curve.severity[0]:g}")
    # A mean over as many rows as it would take if all of them counted alike (Kish, Survey Sampling, 1965).
    step = np.diff(curve.severity, prepend=curve.severity[0], append=curve.severity[-1])
    share = (step[:-1] + step[1:]) / 2 / (curve.severity[-1] - curve.severity[0])
    effective = 1 / float(np.sum(share**2 / curve.rows))
    return _estimate_statistic(
        sums,
        compute_mean_height,
        _estimate_jackknife_variance,
        estimate_end_variance(compute_mean_height(curve), effective),
        (0.0, 1.0),
    )


def _estimate_half(sums: Tally) -> Estimate | NotAvailable:
    fall = find_fall_to_half(sums.full_curve())
    if isinstance(fall, NotAvailable):
        return fall
    return _estimate_statistic(sums, _find_severity_at_half, _estimate_half_sample_variance, fall.ends, (-inf, inf))


Statistic = Callable[[Curve], float]


def _estimate_statistic(
    sums: Tally,
    statistic: Statistic,
    row_spread: Callable[[Tally, Statistic], VarianceEstimate],
    floor: VarianceEstimate,
    bounds: tuple[float, float],
) -> Estimate | NotAvailable:
    """The interval of a statistic of the curve; not available where some part of the rows or seeds has none."""
    if len(sums.group_sizes) < 2:
        return NotAvailable("all rows are in one group: no interval")
    value, each = statistic(sums.full_curve()), np.eye(sums.seeds, dtype=np.bool_)
    rows, seeds = [row_spread(sums, statistic), floor], None
    if sums.seeds > 1:
        without = np.array([statistic(sums.of_seeds(~mask)) for mask in each])
        seeds = estimate_jackknife_variance(value, without, np.ones(sums.seeds, np.int64))
    low, high, row_se, seed_se = compute_interval(value, rows, [seeds], bounds)
    if isnan(low):
        return NotAvailable(f"{value:g} on all rows and seeds, but not defined on some of them: no interval")
    per_seed = [statistic(sums.of_seeds(mask)) for mask in each]
    known = () if any(map(isnan, per_seed)) else tuple(per_seed)
    return Estimate(value, low, high, row_se, seed_se, int(sums.rows.sum()), sums.seeds, known)


def _estimate_jackknife_variance(sums: Tally, statistic: Statistic) -> VarianceEstimate:
    keep = ~np.eye(len(sums.group_sizes), dtype=np.bool_)
    without = np.array([statistic(sums.of_groups(groups)) for groups in keep])
    return estimate_jackknife_variance(statistic(sums.full_curve()), without, sums.group_sizes)


def _estimate_half_sample_variance(sums: Tally, statistic: Statistic) -> VarianceEstimate:
    halves = make_balanced_halves(len(sums.group_sizes))
    on_halves = np.array([statistic(sums.of_groups(groups)) for groups in halves])
    return estimate_half_sample_variance(statistic(sums.full_curve()), on_halves, halves, sums.group_sizes)


def _find_severity_at_half(curve: Curve) -> float:
    fall = find_fall_to_half(curve)
    return fall.severity if isinstance(fall, Fall) else nan
