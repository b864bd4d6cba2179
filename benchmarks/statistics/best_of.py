"""The best of k attempts looks better than it is: by how much, were all of them equally good?

A team that has k attempts scored on one table, and is judged by the best, has its luck picked with it. With errors X_i
of the attempts' scores, normal, of standard errors s_i and a common correlation r (they answer the same rows, and so
err together), the best one lies above the truth by

    E max_i X_i,     X_i = s_i (sqrt(r) Z_0 + sqrt(1 - r) Z_i)

on average, by numerical integration of the law of the maximum given Z_0. For equal s it is s sqrt(1 - r) times the
expected largest of k normal numbers (David and Nagaraja, Order Statistics, 2003, chapter 4). Attempts that differ in
truth gain less by picking; independent ones, r = 0, gain most (Slepian 1962): the harsher bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

_END = 9.0
"""Beyond so many standard errors there is nothing that matters: a probability of 1e-19."""

_STEP = 1e-3
_POINTS = np.arange(-_END, _END + _STEP / 2, _STEP)
_DENSITY = np.exp(-(_POINTS**2) / 2) / sqrt(2 * pi)
_BELOW = np.concatenate([[0.0], np.cumsum((_DENSITY[1:] + _DENSITY[:-1]) / 2) * _STEP])
"""The normal distribution, which NumPy lacks, by the trapezoid rule: right to 1e-7 between points, too."""


@dataclass(frozen=True)
class BestOf:
    """How far the best of `attempts` is expected above the truth, in units of the score, were all equally good;
    `independent`: were their errors independent, too."""

    attempts: int
    optimism: float
    independent: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals."""
        return {
            "attempts": self.attempts,
            "optimism": round(self.optimism, 6),
            "independent": round(self.independent, 6),
        }


def estimate_optimism(standard_errors: Sequence[float], correlation: float) -> BestOf:
    """The optimism of the best of some attempts with these standard errors (k,), and a common correlation in [0, 1]."""
    return BestOf(
        len(standard_errors),
        compute_expected_maximum(standard_errors, correlation),
        compute_expected_maximum(standard_errors, 0.0),
    )


def compute_expected_maximum(standard_errors: Sequence[float], correlation: float) -> float:
    """E max_i X_i of normal X_i around 0 with these standard errors (k,) and a common correlation."""
    errors = np.asarray(standard_errors, np.float64)
    if not len(errors) or not np.isfinite(errors).all() or (errors < 0).any() or not 0 <= correlation <= 1:
        raise ValueError(f"standard errors must be numbers from 0 on, the correlation {correlation} lie in 0..1")
    if len(errors) == 1 or not errors.any():
        return 0.0
    scale = float(errors.max())
    distinct, times = np.unique(errors / scale, return_counts=True)
    if len(distinct) == 1:  # what they have in common moves none past another
        return scale * sqrt(1 - correlation) * _integrate_maximum(distinct, times, 0.0, np.zeros(1), np.ones(1))
    common = np.linspace(-_END, _END, 181) if correlation else np.zeros(1)
    weights = np.exp(-(common**2) / 2)
    return scale * _integrate_maximum(distinct, times, correlation, common, weights / weights.sum())


def compute_common_correlation(covariance: NDArray[np.float64]) -> float:
    """The mean correlation of the pairs in a covariance matrix (k, k), cut to 0..1; 0 where no pair varies."""
    errors = np.sqrt(np.diag(covariance))
    pairs = np.triu_indices(len(errors), 1)
    product = np.outer(errors, errors)[pairs]
    known = product > 0
    if not known.any():
        return 0.0
    return float(np.clip((covariance[pairs][known] / product[known]).mean(), 0, 1))


def _integrate_maximum(
    errors: NDArray[np.float64],
    times: NDArray[np.int64],
    correlation: float,
    common: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> float:
    """E max from the distinct standard errors (m,), the largest 1, each `times` over: the integral of
    [x > 0] - P(max <= x), given each value of the common part (c,) with its weight."""
    at = np.linspace(-_END, _END, 1801)
    below = np.ones((len(common), len(at)))
    for error, count in zip(errors.tolist(), times.tolist(), strict=True):
        below *= _compute_distribution(at, error, correlation, common) ** count
    missing = (at > 0) - weights @ below
    missing[at == 0] += 0.5  # the step lies in the middle of its cell
    return float(missing.sum() * (at[1] - at[0]))


def _compute_distribution(
    at: NDArray[np.float64], error: float, correlation: float, common: NDArray[np.float64]
) -> NDArray[np.float64]:
    """P(X <= x) of one error, given the common part: (c, x)."""
    own = error * sqrt(1 - correlation)
    rest = at - error * sqrt(correlation) * common[:, None]
    # An error far below the largest is none: it could not be divided by.
    probability: NDArray[np.float64]
    probability = (rest > 0) + (rest == 0) / 2 if own < _STEP**3 else np.interp(rest / own, _POINTS, _BELOW)
    return probability
