"""The hierarchical bootstrap of an entry's scores on many benchmarks: which scores another study would have had.

Benchmarks are fixed: these and no others. Within each, training seeds are resampled, and all its scores move together
by the noise of its rows: a normal draw with the cluster-robust (or jackknife) variance of the mean over seeds, which is
what resampling rows or clusters tends to.

Of n seeds n - 1 are drawn, with replacement, and not n: only then is the bootstrap's variance of a mean the unbiased
s^2 / n, which matters where n is 3 (McCarthy and Snowden 1985; Rao and Wu, JASA 1988).

Draws are seeded by a benchmark's name. So they depend neither on who else has entered, nor on the order of benchmarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from .confidence_interval import add_variances
from .iqm import compute_iqm_weights
from .normalised import Summary
from .streams import make_generator
from .variance_estimate import VarianceEstimate

DRAWS = 2000


@dataclass(frozen=True)
class Hierarchy:
    """An entry's scores, N in all (seeds of the first benchmark, of the second ..), as measured and as redrawn.

    values (N,), weights (N,), benchmark (N,): each score, how much it counts (each benchmark alike, and each of its
    seeds), and the number of its benchmark. drawn (draws, N), counts (draws, N): the same of every draw."""

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    benchmark: NDArray[np.int64]
    drawn: NDArray[np.float64]
    counts: NDArray[np.float64]


def bootstrap_hierarchy(names: Sequence[str], summaries: Sequence[Summary], draws: int = DRAWS) -> Hierarchy:
    """The scores on benchmarks of these names, and `draws` resamples of them."""
    seeds = [len(summary.per_seed) for summary in summaries]
    values = np.concatenate([summary.per_seed for summary in summaries])
    benchmark = np.repeat(np.arange(len(names)), seeds)
    each = np.repeat([1 / (len(names) * count) for count in seeds], seeds)
    moved, shares = [], []
    for name, summary in zip(names, summaries, strict=True):
        source = make_generator(f"hierarchical bootstrap/benchmark {name}")
        noise = sqrt(summary.rows.variance) * source.standard_normal((draws, 1))
        moved.append(np.array(summary.per_seed) + noise)
        shares.append(_resample_seed_shares(source, len(summary.per_seed), draws) / len(names))
    return Hierarchy(values, each, benchmark, np.concatenate(moved, axis=1), np.concatenate(shares, axis=1))


def _resample_seed_shares(source: np.random.Generator, size: int, draws: int) -> NDArray[np.float64]:
    """The share that each of `size` seeds has in a resample of size - 1 of them, (draws, size); 1 of a single one."""
    if size == 1:
        return np.ones((draws, 1))
    return source.multinomial(size - 1, np.full(size, 1 / size), draws) / (size - 1)


def estimate_mean_variance(summaries: Sequence[Summary]) -> VarianceEstimate:
    """The variance of the mean over benchmarks, which this bootstrap tends to with more and more draws."""
    return estimate_weighted_variance(summaries, [1 / len(summaries)] * len(summaries))


def estimate_weighted_variance(summaries: Sequence[Summary], weights: Sequence[float]) -> VarianceEstimate:
    """The variance of a weighted sum over benchmarks."""
    parts = [
        VarianceEstimate(weight**2 * part.variance, part.df)
        for summary, weight in zip(summaries, weights, strict=True)
        for part in (summary.rows, summary.seeds)
    ]
    return add_variances(parts)


def estimate_iqm_variance(bootstrap: Hierarchy, summaries: Sequence[Summary]) -> VarianceEstimate:
    """The bootstrap's variance of the interquartile mean. Degrees of freedom are Satterthwaite's, each benchmark
    counting as much as it does on average in the draws."""
    shares = compute_iqm_weights(bootstrap.drawn, bootstrap.counts)
    variance = float((shares * bootstrap.drawn).sum(axis=1).var(ddof=1))
    weights = np.bincount(bootstrap.benchmark, shares.mean(axis=0))
    return VarianceEstimate(variance, estimate_weighted_variance(summaries, weights.tolist()).df)
