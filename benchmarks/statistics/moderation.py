"""Training noise of many entries: each has few seeds of its own, together they have many.

Three seeds tell next to nothing of how much one entry's training varies, but the seeds of all entries of a table tell
how much training varies there, and how unlike entries are in that. So each variance is drawn towards the common one, by
as much as they are alike: with true variances scaled inverse chi-squared around v_0 with d_0 degrees of freedom, that
of an entry with d of its own becomes

    (d_0 v_0 + d v) / (d_0 + d)      with d_0 + d degrees of freedom

(Smyth, Statistical Applications in Genetics and Molecular Biology 2004; d_0 and v_0 from the mean and the variance of
the logarithms, the latter with two standard errors more). No variance is made smaller than it was measured: an entry
whose training is wilder than the others' is none of their kind.
"""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

FEWEST = 4
"""Entries with seeds that it takes: fewer tell nothing of how unlike entries are."""

CAUTION = 2.0
"""Standard errors by which entries are taken as more unlike than they look: with none, some of 15 equal entries whose
training is very unlike differed significantly in 10 to 15 % of trials with three and two seeds."""

Array = NDArray[np.float64]


def moderated(variance: Array, df: Array) -> tuple[Array, Array]:
    """The moderated variances of means over df + 1 seeds, (M,), and their degrees of freedom. A variance of 0 is that
    of training without any chance in it, or of a single seed, and stays."""
    varies = variance > 0
    if np.count_nonzero(varies) < FEWEST:
        return variance, df
    own, half = variance[varies], df[varies] / 2
    logs = np.log(own * (2 * half + 1)) - digamma(half) + np.log(half)
    unlike = float(logs.var(ddof=1)) * (1 + CAUTION * sqrt(2 / (len(own) - 1))) - float(trigamma(half).mean())
    most = float(df[varies].sum())  # all that is known of the common variance
    prior = min(2 * _trigamma_inverse(unlike), most) if unlike > 0 else most
    half_prior = np.array([prior / 2])
    centre = float(digamma(half_prior)[0]) - log(prior / 2) if unlike > 0 else 0.0
    common = exp(float(logs.mean()) + centre)
    found, known = variance.copy(), df.copy()
    drawn = (prior * common / (2 * half + 1) + 2 * half * own) / (prior + 2 * half)
    found[varies] = np.maximum(drawn, own)
    known[varies] = prior + 2 * half
    return found, known


def digamma(x: Array) -> Array:
    """The derivative of log gamma at x > 0 (Abramowitz and Stegun 6.3.5 and 6.3.18)."""
    found, x = np.zeros_like(x), x.copy()
    for _ in range(8):
        found -= np.where(x < 8, 1 / x, 0.0)
        x = np.where(x < 8, x + 1, x)
    square = 1 / x**2
    return found + np.log(x) - 1 / (2 * x) - square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square / 240)))


def trigamma(x: Array) -> Array:
    """The second derivative of log gamma at x > 0 (Abramowitz and Stegun 6.4.6 and 6.4.12)."""
    found, x = np.zeros_like(x), x.copy()
    for _ in range(8):
        found += np.where(x < 8, 1 / x**2, 0.0)
        x = np.where(x < 8, x + 1, x)
    square = 1 / x**2
    return found + 1 / x + square / 2 + square / x * (1 / 6 - square * (1 / 30 - square * (1 / 42 - square / 30)))


def _trigamma_inverse(value: float) -> float:
    """The x with trigamma(x) = value > 0, by bisection of its logarithm."""
    low, high = log(1e-6), log(1e12)
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(np.array([exp(middle)]))[0] > value else (low, middle)
    return exp(low)
