"""How sure is a score, or a difference of two? Intervals over rows and training seeds.

Scores form a table of seeds x rows. Two things vary: which rows were drawn, and which seed trained the model. With
row means m_i over seeds and seed means m_s over rows, the variance of the grand mean is estimated by

    var(m_i) / rows + var(m_s) / seeds

(two-way crossed random effects; counting their interaction twice makes it slightly wide, never narrow). The interval
is a t interval with Satterthwaite's degrees of freedom (Biometrics Bulletin 1946). Rows are taken as independent.

A score of exactly 0 or 1 has no sample variance, and still is not certain: the row variance is taken with one wholly
right and one wholly wrong row added (as Agresti and Coull 1998 do with two of each), the score itself is not touched.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .student_t import two_sided

LEVEL = 0.95

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """A variance of a mean and its degrees of freedom."""

    variance: float
    df: float


@dataclass(frozen=True)
class Estimate:
    """A value, its 95 % t interval, and what went into it. `seed_se` is None for a single seed, whose interval then
    covers rows only."""

    value: float
    low: float
    high: float
    row_se: float
    seed_se: float | None
    rows: int
    seeds: int
    per_seed: tuple[float, ...]

    def record(self) -> dict[str, Any]:
        """Plain JSON; six decimals, so that the last bits of a platform's arithmetic do not show."""
        return {
            "value": round(self.value, 6),
            "low": round(self.low, 6),
            "high": round(self.high, 6),
            "row_se": round(self.row_se, 6),
            "seed_se": None if self.seed_se is None else round(self.seed_se, 6),
            "rows": self.rows,
            "seeds": self.seeds,
            "per_seed": [round(value, 6) for value in self.per_seed],
        }


def _variance(values: list[float]) -> float:
    mean = fsum(values) / len(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def row_spread(scores: Scores, ends: tuple[float, float] = (0.0, 1.0)) -> Spread:
    """The part of the variance that comes from the draw of rows, with the two `ends` of the scale added as rows.

    `scores` has shape (seeds, rows)."""
    seeds, rows = scores.shape
    # Few distinct row means (k of S seeds right): sum over them exactly, so that order never shows in the bits.
    means, counts = np.unique(scores.sum(axis=0), return_counts=True)
    tally = [*zip((means / seeds).tolist(), counts.tolist(), strict=True), (ends[0], 1), (ends[1], 1)]
    n = rows + 2
    centre = fsum(value * count for value, count in tally) / n
    variance = fsum(count * (value - centre) ** 2 for value, count in tally) / (n - 1)
    return Spread(variance / n, n - 1)


def seed_spread(per_seed: list[float]) -> Spread | None:
    """The part of the variance that comes from training seeds; None for a single seed."""
    return Spread(_variance(per_seed) / len(per_seed), len(per_seed) - 1) if len(per_seed) > 1 else None


def seed_means(scores: Scores) -> list[float]:
    return [fsum(row) / len(row) for row in scores.tolist()]


def interval(
    value: float, rows: list[Spread], seeds: list[Spread | None], bounds: tuple[float, float]
) -> tuple[float, float, float, float | None]:
    """(low, high, row_se, seed_se) of the t interval around `value`, cut at `bounds`."""
    known = [spread for spread in seeds if spread is not None]
    parts = [spread for spread in (*rows, *known) if spread.variance > 0]
    total = fsum(spread.variance for spread in parts)
    df = total**2 / fsum(spread.variance**2 / spread.df for spread in parts)
    reach = two_sided(LEVEL, df) * sqrt(total)
    row_se = sqrt(fsum(spread.variance for spread in rows))
    seed_se = sqrt(fsum(spread.variance for spread in known)) if known else None
    return max(bounds[0], value - reach), min(bounds[1], value + reach), row_se, seed_se


def mean(scores: Scores) -> Estimate:
    """The mean of `scores`, shape (seeds, rows), each in [0, 1]."""
    seeds, rows = scores.shape
    per_seed = seed_means(scores)
    value = fsum(per_seed) / seeds
    low, high, row_se, seed_se = interval(value, [row_spread(scores)], [seed_spread(per_seed)], (0.0, 1.0))
    return Estimate(value, low, high, row_se, seed_se, rows, seeds, tuple(per_seed))


def gap(left: Scores, right: Scores) -> Estimate:
    """mean(left) - mean(right) of the *same* models on different rows: ID minus OOD.

    Row variances add; the seed variance is that of each seed's own gap, so what moves both scores cancels."""
    per_seed = [a - b for a, b in zip(seed_means(left), seed_means(right), strict=True)]
    value = fsum(per_seed) / len(per_seed)
    rows = [row_spread(left), row_spread(right)]
    low, high, row_se, seed_se = interval(value, rows, [seed_spread(per_seed)], (-1.0, 1.0))
    n = left.shape[1] + right.shape[1]
    return Estimate(value, low, high, row_se, seed_se, n, len(per_seed), tuple(per_seed))


def paired_difference(left: Scores, right: Scores) -> Estimate:
    """mean(left) - mean(right) of *different* models on the same rows, shapes (seeds of each, rows).

    Rows are paired: the row variance is that of the row-wise differences; seeds of two models are independent."""
    difference = left.mean(axis=0) - right.mean(axis=0)
    a, b = seed_means(left), seed_means(right)
    value = fsum(a) / len(a) - fsum(b) / len(b)
    rows = row_spread(difference[None, :], (-1.0, 1.0))
    low, high, row_se, seed_se = interval(value, [rows], [seed_spread(a), seed_spread(b)], (-1.0, 1.0))
    return Estimate(value, low, high, row_se, seed_se, left.shape[1], min(len(a), len(b)), ())


def difference_of_gaps(left: tuple[Scores, Scores], right: tuple[Scores, Scores]) -> Estimate:
    """(ID - OOD of one model) - (ID - OOD of another), rows paired within ID and within OOD."""
    rows = [
        row_spread((a.mean(axis=0) - b.mean(axis=0))[None, :], (-1.0, 1.0)) for a, b in zip(left, right, strict=True)
    ]
    gaps = [[a - b for a, b in zip(seed_means(x), seed_means(y), strict=True)] for x, y in (left, right)]
    value = fsum(gaps[0]) / len(gaps[0]) - fsum(gaps[1]) / len(gaps[1])
    low, high, row_se, seed_se = interval(value, rows, [seed_spread(values) for values in gaps], (-2.0, 2.0))
    n = left[0].shape[1] + left[1].shape[1]
    return Estimate(value, low, high, row_se, seed_se, n, min(map(len, gaps)), ())
