"""How sure is a score, or a difference of two? Intervals over rows and training seeds.

A value is measured on rows, with several seeds. Two things vary: which rows were drawn, and which seed trained the
model. For a mean, with row means m_i over seeds and seed means m_s over rows, the variance of the grand mean is
estimated by

    var(m_i) / rows + var(m_s) / seeds

(two-way crossed random effects; counting their interaction twice makes it slightly wide, never narrow). For any other
statistic the first term is the jackknife's (sample.py). The interval is a t interval with Satterthwaite's degrees of
freedom (Biometrics Bulletin 1946). Rows are taken as independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, isfinite, nan, sqrt
from typing import Any

from ..derived.not_available import NotAvailable
from .sample import Sample, Scores  # noqa: F401
from .spread import Spread, average, seed_spread
from .student_t import two_sided

LEVEL = 0.95


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

    @property
    def defined(self) -> bool:
        """Whether there is a value, and an interval around it."""
        return isfinite(self.value) and isfinite(self.low) and isfinite(self.high)

    def record(self) -> dict[str, Any]:
        """Plain JSON; six decimals, so that the last bits of a platform's arithmetic do not show. `n/a` with the reason
        where it is not defined."""
        if not isfinite(self.value):
            return NotAvailable("not defined on these rows and answers").record()
        if not self.defined:
            return NotAvailable(f"{self.value:g}, but not defined without some of the rows: no interval").record()
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


def interval(
    value: float, rows: list[Spread], seeds: list[Spread | None], bounds: tuple[float, float]
) -> tuple[float, float, float, float | None]:
    """(low, high, row_se, seed_se) of the t interval around `value`, cut at `bounds`; NaN where there is none."""
    known = [spread for spread in seeds if spread is not None]
    row_se = sqrt(fsum(spread.variance for spread in rows))
    seed_se = sqrt(fsum(spread.variance for spread in known)) if known else None
    if not all(map(isfinite, (value, row_se, seed_se or 0.0))):
        return nan, nan, row_se, seed_se
    parts = [spread for spread in (*rows, *known) if spread.variance > 0]
    total = fsum(spread.variance for spread in parts)
    reach = 0.0
    if parts:
        # By shares of the total: squares of very large or very small variances are no floats.
        df = 1 / fsum((spread.variance / total) ** 2 / spread.df for spread in parts)
        reach = two_sided(LEVEL, df) * sqrt(total)
    return max(bounds[0], value - reach), min(bounds[1], value + reach), row_se, seed_se


def _estimate(
    per_seed: list[float], rows: list[Spread], seeds: list[Spread | None], bounds: tuple[float, float], count: int
) -> Estimate:
    value = average(per_seed)
    low, high, row_se, seed_se = interval(value, rows, seeds, bounds)
    return Estimate(value, low, high, row_se, seed_se, count, len(per_seed), tuple(per_seed))


def mean(sample: Sample) -> Estimate:
    """The value of a sample: the mean over its seeds."""
    return _estimate(sample.per_seed, [sample.spread()], [seed_spread(sample.per_seed)], sample.bounds, sample.rows)


def gap(left: Sample, right: Sample) -> Estimate:
    """left - right of the *same* models on different rows: ID minus OOD.

    Row variances add; the seed variance is that of each seed's own gap, so what moves both scores cancels."""
    per_seed = [a - b for a, b in zip(left.per_seed, right.per_seed, strict=True)]
    rows = [left.spread(), right.spread()]
    return _estimate(per_seed, rows, [seed_spread(per_seed)], _reach(left, right), left.rows + right.rows)


def _reach(left: Sample, right: Sample) -> tuple[float, float]:
    """The least and the greatest difference possible."""
    return left.bounds[0] - right.bounds[1], left.bounds[1] - right.bounds[0]


def paired_difference(left: Sample, right: Sample) -> Estimate:
    """left - right of *different* models on the same rows.

    Rows are paired: the row variance is that of the row-wise differences; seeds of two models are independent."""
    rows = [left.pooled().minus(right.pooled()).spread()]
    return _between(rows, [left.per_seed, right.per_seed], left.rows, _reach(left, right))


def difference_of_gaps(left: tuple[Sample, Sample], right: tuple[Sample, Sample]) -> Estimate:
    """(ID - OOD of one model) - (ID - OOD of another), rows paired within ID and within OOD."""
    rows = [a.pooled().minus(b.pooled()).spread() for a, b in zip(left, right, strict=True)]
    gaps = [[a - b for a, b in zip(x.per_seed, y.per_seed, strict=True)] for x, y in (left, right)]
    reach = _reach(*left)
    widest = reach[1] - reach[0]
    return _between(rows, gaps, left[0].rows + left[1].rows, (-widest, widest))


def _between(rows: list[Spread], values: list[list[float]], count: int, bounds: tuple[float, float]) -> Estimate:
    """The difference of two models' values, whose seeds have nothing to do with each other."""
    value = average(values[0]) - average(values[1])
    low, high, row_se, seed_se = interval(value, rows, [seed_spread(one) for one in values], bounds)
    return Estimate(value, low, high, row_se, seed_se, count, min(map(len, values)), ())
