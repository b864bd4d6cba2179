"""The hierarchical bootstrap of an entry's scores on many benchmarks: which scores another study would have had.

Benchmarks are *fixed*, or *resampled*:

- fixed: these benchmarks and no others. Within each, training seeds are resampled, and all its scores move together by
  the noise of its rows: a normal draw with the cluster-robust (or jackknife) variance of the mean over seeds, which is
  what resampling rows or clusters tends to.
- resampled: these benchmarks stand for others like them. Whole benchmarks are resampled, with the seeds that they have:
  the noise of rows and seeds is in their scores already, and drawing it again would count it twice (Davison and
  Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).

Of n seeds or benchmarks n - 1 are drawn, with replacement, and not n: only then is the bootstrap's variance of a mean
the unbiased s^2 / n, which matters where n is 3 (McCarthy and Snowden 1985; Rao and Wu, JASA 1988).

Draws are seeded by a benchmark's name. So they depend neither on who else has entered, nor on the order of benchmarks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from .clusters import FEW
from .iqm import kept
from .margin import added
from .normalised import Summary
from .spread import Spread
from .streams import generator

Treated = Literal["fixed", "resampled"]
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


def hierarchy(names: Sequence[str], found: Sequence[Summary], treated: Treated, draws: int = DRAWS) -> Hierarchy:
    """The scores on benchmarks of these names, and `draws` resamples of them."""
    hold_enough(len(names), treated)
    seeds = [len(one.per_seed) for one in found]
    values = np.concatenate([one.per_seed for one in found])
    benchmark = np.repeat(np.arange(len(names)), seeds)
    each = np.repeat([1 / (len(names) * count) for count in seeds], seeds)
    if treated == "resampled":
        counts = (
            _counts(generator("hierarchical bootstrap/benchmarks"), len(names), draws)[:, benchmark] * each * len(names)
        )
        return Hierarchy(values, each, benchmark, np.broadcast_to(values, counts.shape), counts)
    moved, shares = [], []
    for name, one in zip(names, found, strict=True):
        source = generator(f"hierarchical bootstrap/benchmark {name}")
        noise = sqrt(one.rows.variance) * source.standard_normal((draws, 1))
        moved.append(np.array(one.per_seed) + noise)
        shares.append(_counts(source, len(one.per_seed), draws) / len(names))
    return Hierarchy(values, each, benchmark, np.concatenate(moved, axis=1), np.concatenate(shares, axis=1))


def hold_enough(benchmarks: int, treated: Treated) -> None:
    """Refuse what cannot be resampled."""
    if not benchmarks:
        raise FarshiftError("an aggregate needs a benchmark")
    if treated == "resampled" and benchmarks < FEW:
        raise FarshiftError(
            f"{benchmarks} benchmarks say nothing of others: resampling takes {FEW} or more; take these as fixed"
        )


def _counts(source: np.random.Generator, size: int, draws: int) -> NDArray[np.float64]:
    """The share that each of `size` things has in a resample of size - 1 of them, (draws, size); 1 of a single one."""
    if size == 1:
        return np.ones((draws, 1))
    return source.multinomial(size - 1, np.full(size, 1 / size), draws) / (size - 1)


def mean_variance(found: Sequence[Summary], treated: Treated) -> Spread:
    """The variance of the mean over benchmarks, which this bootstrap tends to with more and more draws."""
    if treated == "fixed":
        return weighted_variance(found, [1 / len(found)] * len(found))
    values = np.array([one.value for one in found])
    return Spread(float(values.var(ddof=1)) / len(found), len(found) - 1)


def weighted_variance(found: Sequence[Summary], weights: Sequence[float]) -> Spread:
    """The variance of a weighted sum over fixed benchmarks."""
    parts = [
        Spread(weight**2 * part.variance, part.df)
        for one, weight in zip(found, weights, strict=True)
        for part in (one.rows, one.seeds)
    ]
    return added(parts)


def iqm_variance(here: Hierarchy, found: Sequence[Summary], treated: Treated) -> Spread:
    """The bootstrap's variance of the interquartile mean. Degrees of freedom: of fixed benchmarks Satterthwaite's, each
    benchmark counting as much as it does on average in the draws; of resampled ones those of a trimmed mean, the number
    of scores that it keeps less one (Tukey and McLaughlin, Sankhya 1963)."""
    shares = kept(here.drawn, here.counts)
    variance = float((shares * here.drawn).sum(axis=1).var(ddof=1))
    if treated == "resampled":
        return Spread(variance, len(found) - 2 * (len(found) // 4) - 1)
    weights = np.bincount(here.benchmark, shares.mean(axis=0))
    return Spread(variance, weighted_variance(found, weights.tolist()).df)
