"""Selection bias of the best of k attempts: its expected optimism if all attempts are equally good.

A team that is ranked by the best of its k attempts on one leaderboard benefits from chance. Let the errors X_i of the
attempts' scores be normal with standard errors s_i and a common correlation r (they are correlated, since they are
evaluated on the same rows). The best score then exceeds the true score by

    E max_i X_i,     X_i = s_i (sqrt(r) Z_0 + sqrt(1 - r) Z_i)

on average, computed by numerical integration of the distribution of the maximum given Z_0. For equal s it is
s sqrt(1 - r) times the expected maximum of k standard normal variables (David and Nagaraja, Order Statistics, 2003,
chapter 4). The optimism is smaller for attempts whose true scores differ, and largest for independent attempts, r = 0
(Slepian 1962), which give the more conservative bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

_END = 9.0
"""Integration limit in standard errors; the probability beyond is 1e-19."""


def compute_expected_maximum(standard_errors: Sequence[float], correlation: float) -> float:
    """Compute E max_i X_i of zero-mean normal X_i with these standard errors (k,), finite, and a common correlation in
    [0, 1]."""
    errors = np.asarray(standard_errors, np.float64)
    if len(errors) == 1 or not errors.any():
        return 0.0
    scale = float(errors.max())
    distinct, times = np.unique(errors / scale, return_counts=True)
    if len(distinct) == 1:  # with equal standard errors the common part does not affect the order
        return scale * sqrt(1 - correlation) * _integrate_maximum(distinct, times, 0.0, np.zeros(1), np.ones(1))
    common = np.linspace(-_END, _END, 181) if correlation else np.zeros(1)
    weights = np.exp(-(common**2) / 2)
    return scale * _integrate_maximum(distinct, times, correlation, common, weights / weights.sum())


def compute_common_correlation(covariance: NDArray[np.float64]) -> float:
    """Compute the mean pairwise correlation of a covariance matrix (k, k), clipped to [0, 1]; 0 if no pair varies."""
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
    """Compute E max from the distinct standard errors (m,), the largest 1, with multiplicities `times`: the integral of
    [x > 0] - P(max <= x), averaged over values of the common part (c,) with weights."""
    at = np.linspace(-_END, _END, 1801)
    below = np.ones((len(common), len(at)))
    for error, count in zip(errors.tolist(), times.tolist(), strict=True):
        below *= _compute_distribution(at, error, correlation, common) ** count
    missing = (at > 0) - weights @ below
    missing[at == 0] += 0.5  # the step is in the middle of its cell
    return float(missing.sum() * (at[1] - at[0]))


def _compute_distribution(
    at: NDArray[np.float64], error: float, correlation: float, common: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Compute P(X <= x) of one error given the common part, (c, x)."""
    from scipy.special import ndtr

    own = error * sqrt(1 - correlation)
    rest = at - error * sqrt(correlation) * common[:, None]
    # An error far below the largest is treated as 0, to avoid division by it.
    probability: NDArray[np.float64] = (rest > 0) + (rest == 0) / 2 if own < 1e-9 else ndtr(rest / own)
    return probability
