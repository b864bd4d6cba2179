"""The hierarchical bootstrap of an entry's scores on many benchmarks.

Benchmarks are fixed. Within each, training seeds are resampled, and row noise shifts all its scores together: it is
drawn from a normal distribution with the cluster-robust (or jackknife) variance of the mean over seeds, which is the
limit of resampling rows or clusters.

For n seeds, n - 1 are drawn with replacement instead of n, so that the bootstrap variance of a mean is the unbiased
s^2 / n, which matters for n = 3 (McCarthy and Snowden 1985; Rao and Wu, JASA 1988).

Draws are seeded by the benchmark's name, so they do not depend on other entries or on the order of benchmarks.
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
    """An entry's N scores (seeds of the first benchmark, of the second ..), as measured and as resampled.

    values (N,), weights (N,), benchmark (N,): each score, its weight (equal per benchmark, and per seed within a
    benchmark), and the index of its benchmark. drawn (draws, N), counts (draws, N): values and weights of every
    draw."""

    values: NDArray[np.float64]
    weights: NDArray[np.float64]
    benchmark: NDArray[np.int64]
    drawn: NDArray[np.float64]
    counts: NDArray[np.float64]


def bootstrap_hierarchy(names: Sequence[str], summaries: Sequence[Summary], draws: int = DRAWS) -> Hierarchy:
    """Resample the scores on the named benchmarks `draws` times."""
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
    """Draw the share of each of `size` seeds in a resample of size - 1 seeds, (draws, size); 1 for a single seed."""
    if size == 1:
        return np.ones((draws, 1))
    return source.multinomial(size - 1, np.full(size, 1 / size), draws) / (size - 1)


def estimate_mean_variance(summaries: Sequence[Summary]) -> VarianceEstimate:
    """Estimate the variance of the mean over benchmarks, the limit of this bootstrap for many draws."""
    return estimate_weighted_variance(summaries, [1 / len(summaries)] * len(summaries))


def estimate_weighted_variance(summaries: Sequence[Summary], weights: Sequence[float]) -> VarianceEstimate:
    """Estimate the variance of a weighted sum over benchmarks."""
    parts = [
        VarianceEstimate(weight**2 * part.variance, part.df)
        for summary, weight in zip(summaries, weights, strict=True)
        for part in (summary.rows, summary.seeds)
    ]
    return add_variances(parts)


def estimate_iqm_variance(bootstrap: Hierarchy, summaries: Sequence[Summary]) -> VarianceEstimate:
    """Estimate the bootstrap variance of the interquartile mean. Degrees of freedom are Satterthwaite's, with each
    benchmark's average weight over the draws."""
    shares = compute_iqm_weights(bootstrap.drawn, bootstrap.counts)
    variance = float((shares * bootstrap.drawn).sum(axis=1).var(ddof=1))
    weights = np.bincount(bootstrap.benchmark, shares.mean(axis=0))
    return VarianceEstimate(variance, estimate_weighted_variance(summaries, weights.tolist()).df)
