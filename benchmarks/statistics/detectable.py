"""How small a difference between two entries can a benchmark show? The minimum detectable difference.

A two-sided 5 % test of a paired difference, whose standard error is se with df degrees of freedom, finds a true
difference of

    (t_(0.975, df) + t_(0.8, df)) se

in 80 % of studies (2.80 se with many rows, and more with few seeds or clusters). se is that of the test itself
(interval.py): paired rows or clusters, and the training seeds of either entry.

Either se is *measured*, on average over all pairs of the entries that there are, or *assumed*: two entries that
disagree in correctness on a share d of the n rows, with an intraclass correlation r of these disagreements in clusters
of n_c rows,

    se^2 = d / n (1 + r (sum_c n_c^2 / n - 1))

(the design effect of Kish 1965), without the noise of training, which nobody can assume for others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum, inf, isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clusters import Codes, covariance_of_means, treated
from .margin import added
from .max_t import t_quantiles
from .sample import Sample
from .shared_rows import less
from .spread import Spread, seed_spread

SIZE, POWER = 0.05, 0.8
DISAGREEMENT = 0.1
"""The share of rows on which two entries are assumed to disagree, as in the audit of a split."""


@dataclass(frozen=True)
class Detectable:
    """The minimum detectable difference of two entries whose scores vary as the measured ones' do on average, and what
    a tenth (`low`) and nine tenths (`high`) of the pairs do not exceed. pairs: how many were measured; 0 where it is
    assumed. single: how many of them have a single seed on either side, whose training noise is not in theirs."""

    value: float
    low: float
    high: float
    pairs: int
    single: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals."""
        numbers = {"value": self.value, "low": self.low, "high": self.high}
        return {name: round(number, 6) for name, number in numbers.items()} | {
            "pairs": self.pairs,
            "single": self.single,
        }


def differences(spreads: Sequence[Spread]) -> NDArray[np.float64]:
    """The minimum detectable differences of tests with these variances, in their order.

    Of the t quantile of power a closed form is used, not the noncentral t: that is 5 % too small for 2 degrees of
    freedom, 1 % for 4, and right beyond."""
    variance = np.array([spread.variance for spread in spreads])
    df = np.array([spread.df if isfinite(spread.df) else 1.0 for spread in spreads])  # no variance: of no matter
    found: NDArray[np.float64] = (t_quantiles(SIZE, df) + t_quantiles(2 - 2 * POWER, df)) * np.sqrt(variance)
    return found


def planned(parts: Sequence[Spread]) -> Spread:
    """The variance of a test with these true parts, and the degrees of freedom that it will find itself to have.

    A test knows its parts' variances s^2 by estimates, and gets Satterthwaite's degrees of freedom from these. With few
    seeds, one estimate is often much larger than the others, and they are fewer than the true variances would give:
    with E s^4 = (1 + 2 / df) sigma^4 in both places, (S^2 + 2 sum sigma^4 / df) / sum (1 + 2 / df) sigma^4 / df for
    the sum S of all sigma^2."""
    total = fsum(part.variance for part in parts)
    shares = [(part.variance / total, part.df) for part in parts if part.variance > 0]
    if not shares:
        return Spread(total, inf)
    above = 1 + fsum(2 * share**2 / df for share, df in shares)
    return Spread(total, above / fsum((1 + 2 / df) * share**2 / df for share, df in shares))


MOST_PAIRS = 2000
"""Of about so many pairs the spread is computed: of more, every k-th in the order of names."""


def measured(samples: Mapping[str, Sample], seeds: int | None = None) -> Detectable | None:
    """The minimum detectable difference among entries measured on the same rows; None of fewer than two.

    seeds: were every entry trained with so many, its seeds varying as they do (what a study plans with)."""
    pooled = {name: sample.pooled() for name, sample in sorted(samples.items())}
    by_seeds = {name: _seeds(samples[name], seeds) for name in pooled}
    in_both = {name: samples[name].interaction() for name in pooled}
    rows, found, single = [], [], 0
    pairs = [*combinations(pooled, 2)]
    for left, right in pairs[:: max(1, len(pairs) // MOST_PAIRS)]:
        known = [spread for name in (left, right) if (spread := by_seeds[name]) is not None]
        apart = less(pooled[left].minus(pooled[right]).spread(), in_both[left] + in_both[right])
        whole = added([apart, *known])
        if isfinite(whole.variance):
            rows.append(apart)
            found.append(whole)
            single += len(known) < 2
    if not found:
        return None
    trained = [spread for spread in by_seeds.values() if spread is not None and isfinite(spread.variance)]
    average = planned([_mean(rows), *[_mean(trained)] * 2] if trained else [_mean(rows)])
    low, high = np.quantile(differences(found), [0.1, 0.9]).tolist()
    return Detectable(float(differences([average])[0]), low, high, len(found), single)


def _mean(spreads: Sequence[Spread]) -> Spread:
    return Spread(
        *(fsum(each) / len(spreads) for each in zip(*((one.variance, one.df) for one in spreads), strict=True))
    )


def _seeds(sample: Sample, wanted: int | None) -> Spread | None:
    """The part of the variance that comes from an entry's seeds, were there as many as `wanted`."""
    found = seed_spread(sample.per_seed)
    if found is None or wanted is None:
        return found
    return Spread(found.variance * len(sample.per_seed) / wanted, wanted - 1) if wanted > 1 else None


def assumed(
    rows: int, clusters: Codes | None = None, disagreement: float = DISAGREEMENT, within: float = 0.0
) -> Detectable:
    """The minimum detectable difference in a share of right rows, of two entries that disagree on the share
    `disagreement` of `rows` rows, where their disagreements in one cluster correlate with `within`.

    clusters (rows,): `codes`. Fixed ones, or a single one, stand for no others, and `within` plays no part."""
    variance, df = disagreement / rows, rows - 1.0
    if clusters is not None and treated(clusters) == "random":
        sizes = np.bincount(clusters)
        variance *= 1 + within * (float((sizes**2).sum()) / rows - 1)
        df = covariance_of_means(np.zeros((1, rows)), clusters)[1]
    found = float(differences([Spread(variance, df)])[0])
    return Detectable(found, found, found, 0, 0)
