"""Student's t distribution: tail probability and quantile, without SciPy."""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300


def _evaluate_continued_fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction of the incomplete beta function by Lentz's method (Numerical Recipes, 6.4)."""
    c, d = 1.0, 1.0 - (a + b) * x / (a + 1.0)
    d = 1.0 / (d if abs(d) > _TINY else _TINY)
    fraction = d
    for m in range(1, 1000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 + step * d
            d = 1.0 / (d if abs(d) > _TINY else _TINY)
            c = 1.0 + step / c
            c = c if abs(c) > _TINY else _TINY
            fraction *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return fraction


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Compute the regularised incomplete beta function I_x(a, b)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * _evaluate_continued_fraction(a, b, x) / a
    return 1.0 - front * _evaluate_continued_fraction(b, a, 1 - x) / b


def compute_upper_tail(t: float, df: float) -> float:
    """Compute P(T > t) for t >= 0."""
    return 0.5 * incomplete_beta(df / 2, 0.5, df / (df + t * t))


@lru_cache(maxsize=1024)
def find_two_sided_quantile(level: float, df: float) -> float:
    """Find t with P(|T| <= t) = level, for df > 0 degrees of freedom (not necessarily an integer), by bisection."""
    if not (0 < level < 1 and df > 0):
        raise ValueError(f"level {level} must lie in (0, 1), and df {df} must be positive")
    tail, low, high = (1 - level) / 2, 0.0, 1.0
    while compute_upper_tail(high, df) > tail and high < 1e12:
        high *= 2
    root, error = _estimate_quantile(tail, df, high)
    for _ in range(200):
        middle = (low + high) / 2
        is_below = middle < root if abs(middle - root) > error else compute_upper_tail(middle, df) > tail
        low, high = (middle, high) if is_below else (low, middle)
        if high - low <= 1e-12 * high:
            break
    return (low + high) / 2


def _estimate_quantile(tail: float, df: float, start: float) -> tuple[float, float]:
    """Return t with P(T > t) = tail, and a bound of its error, by Newton's method from `start`, which is not below it.

    The logarithm of the tail is concave in log t, so that no step leads below the quantile."""
    t, error = start, 1e-10 + 1e-14 * df
    scale = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - math.log(df * math.pi) / 2
    for _ in range(50):
        above = compute_upper_tail(t, df)
        density = math.exp(scale - (df + 1) / 2 * math.log1p(t * t / df))
        if not (above > 0 and density > 0):
            break
        step = math.log(above / tail) * above / (density * t)
        t *= math.exp(step)
        if abs(step) < error / 100:
            return t, error * t
    return start, math.inf
