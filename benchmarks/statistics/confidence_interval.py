"""A value, how far its 95 % t interval reaches, and with how many degrees of freedom that is known."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, isfinite, nan, sqrt
from typing import Any

from .not_available import NotAvailable
from .student_t import find_two_sided_quantile
from .variance_estimate import VarianceEstimate, sum_variances

LEVEL = 0.95


@dataclass(frozen=True)
class ConfidenceInterval:
    """A value with its 95 % t interval; `low` and `high` are NaN where the value has no variance that is known."""

    value: float
    low: float
    high: float
    se: float
    df: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals; `n/a` with the reason where there is no interval. `df` is null where it has no
        end: nothing in the value varies."""
        if not (isfinite(self.value) and isfinite(self.low) and isfinite(self.high)):
            return NotAvailable("not defined on these rows and answers").to_dict()
        numbers = {"value": self.value, "low": self.low, "high": self.high, "se": self.se}
        df = round(self.df, 1) if isfinite(self.df) else None
        return {name: round(number, 6) + 0.0 for name, number in numbers.items()} | {"df": df}


def add_variances(parts: Iterable[VarianceEstimate]) -> VarianceEstimate:
    """The variance of a sum of independent parts; infinitely many degrees of freedom where no part varies."""
    parts = list(parts)
    return sum_variances(parts) if any(part.variance != 0 for part in parts) else VarianceEstimate(0.0, inf)


def make_confidence_interval(
    value: float, spread: VarianceEstimate, bounds: tuple[float, float] = (-inf, inf)
) -> ConfidenceInterval:
    """The t interval around `value`, cut at `bounds`."""
    if not (isfinite(value) and isfinite(spread.variance)):
        return ConfidenceInterval(value, nan, nan, nan, spread.df)
    se = sqrt(spread.variance)
    reach = se * find_two_sided_quantile(LEVEL, spread.df) if se else 0.0
    return ConfidenceInterval(value, max(bounds[0], value - reach), min(bounds[1], value + reach), se, spread.df)
