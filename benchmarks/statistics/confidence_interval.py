"""A value with its 95 % t interval and degrees of freedom."""

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
    """A value with its 95 % t interval; `low` and `high` are NaN if the variance is unknown."""

    value: float
    low: float
    high: float
    se: float
    df: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON with six decimals; `n/a` with the reason if there is no interval. `df` is null if it is
        infinite, since nothing in the value varies."""
        if not (isfinite(self.value) and isfinite(self.low) and isfinite(self.high)):
            return NotAvailable("not defined on these predictions").to_dict()
        numbers = {"value": self.value, "low": self.low, "high": self.high, "se": self.se}
        df = round(self.df, 1) if isfinite(self.df) else None
        return {name: round(number, 6) + 0.0 for name, number in numbers.items()} | {"df": df}


def add_variances(parts: Iterable[VarianceEstimate]) -> VarianceEstimate:
    """Add the variances of independent parts; the degrees of freedom are infinite if no part varies."""
    parts = list(parts)
    return sum_variances(parts) if any(part.variance != 0 for part in parts) else VarianceEstimate(0.0, inf)


def make_confidence_interval(
    value: float, spread: VarianceEstimate, bounds: tuple[float, float] = (-inf, inf)
) -> ConfidenceInterval:
    """Make the t interval around `value`, clipped to `bounds`."""
    if not (isfinite(value) and isfinite(spread.variance)):
        return ConfidenceInterval(value, nan, nan, nan, spread.df)
    se = sqrt(spread.variance)
    reach = se * find_two_sided_quantile(LEVEL, spread.df) if se else 0.0
    return ConfidenceInterval(value, max(bounds[0], value - reach), min(bounds[1], value + reach), se, spread.df)
