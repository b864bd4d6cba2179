"""The inductive bias that a task requires: how rare hypotheses of a low test error are among those that fit training.

    bits = -log2 P(test error <= target),   hypotheses ~ N(mean, covariance) given that they are right in training

Boopathy, Yue, Hwang, Iyer and Fiete, "Towards Exact Computation of Inductive Bias" (IJCAI 2024, arXiv:2406.15941): the
hypotheses are functions of a Gaussian process with an RBF kernel, conditioned on the training labels (their algorithm
1), and the distribution of their errors is a scaled non-central chi-squared, fitted to draws, whose tail is read at the
target. The released code gives nats; its kernel has width 1, fits its two linear systems by gradient descent and the
chi-squared by likelihood. Here the systems are solved, and the chi-squared has the first three cumulants of the errors,
which are known in closed form, so that nothing is drawn:

    error = mean_i (f_i - y_i)^2:   k_r = 2^(r-1) (r-1)! (tr C^r / n^r + r b' C^(r-1) b / n^r),  b the mean's error
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]

JITTER = 1e-6
"""Added to the kernel's diagonal, so that rows that coincide can be solved for."""


def condition_process(train: Reals, labels: Reals, queries: Reals, width: float) -> tuple[Reals, Reals]:
    """Mean (m,) and covariance (m, m) at `queries` (m, d) of a Gaussian process of variance 1 with an RBF kernel, given
    its values `labels` (n,) at `train` (n, d)."""
    across = compute_kernel(train, queries, width)
    solved = np.linalg.solve(
        compute_kernel(train, train, width) + JITTER * np.eye(len(train)), np.c_[labels[:, None], across]
    )
    return across.T @ solved[:, 0], compute_kernel(queries, queries, width) - across.T @ solved[:, 1:]


def compute_kernel(left: Reals, right: Reals, width: float) -> Reals:
    """exp(-|x - y|^2 / (2 width^2)) of rows (n, d) and (m, d): (n, m)."""
    squares = (left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T
    kernel: Reals = np.exp(-np.maximum(squares, 0) / (2 * width**2))
    return kernel


def compute_cumulants(bias: Reals, covariance: Reals) -> tuple[float, float, float]:
    """The first three cumulants of the mean square of a normal vector with mean `bias` (m,) and `covariance`."""
    spread = covariance / len(bias)
    square = spread @ spread
    first, second = spread @ bias, square @ bias
    return (
        float(np.trace(spread) + bias @ bias / len(bias)),
        float(2 * np.trace(square) + 4 * (bias @ first) / len(bias)),
        float(8 * np.trace(square @ spread) + 24 * (bias @ second) / len(bias)),
    )


def compute_bits(bias: Reals, covariance: Reals, target: float) -> float:
    """-log2 of the probability that the mean square of a normal vector is at most `target`, by a scaled non-central
    chi-squared of the same mean, variance and third cumulant, or as near to it as one can be; exact for one number and
    for equal variances without bias."""
    from scipy.stats import ncx2

    mean, variance, third = compute_cumulants(bias, covariance)
    # Of a chi-squared scaled by s: mean = s df + s nc, half = s^2 df + 2 s^2 nc, eighth = s^3 df + 3 s^3 nc, so that
    # mean s^2 - 2 half s + eighth = 0. Neither df nor nc is negative if s is between half / (2 mean) and half / mean.
    half, eighth = variance / 2, third / 8
    scale = (half - np.sqrt(max(half**2 - mean * eighth, 0.0))) / mean
    scale = float(np.clip(scale, half / (2 * mean), half / mean))
    freedom, off = max(2 * mean - half / scale, 1e-9) / scale, max(half / scale - mean, 0.0) / scale
    bits = float(-ncx2.logcdf(target, freedom, off, scale=scale) / np.log(2))
    return bits if np.isfinite(bits) else _approximate_tail(target / scale, freedom, off)


def _approximate_tail(x: float, freedom: float, off: float) -> float:
    """The bits of a tail too thin for float64: z^2 / 2 nats, z by Sankaran's approximation (Biometrika 1963) of the
    non-central chi-squared by a power of a normal number, as in the released code."""
    mean, twice, thrice = freedom + off, freedom + 2 * off, freedom + 3 * off
    h = 1 - 2 / 3 * mean * thrice / twice**2
    p = twice / mean**2
    m = (h - 1) * (1 - 3 * h)
    centre = 1 + h * p * (h - 1 - (2 - h) * m * p / 2)
    z = ((x / mean) ** h - centre) / (h * np.sqrt(2 * p) * (1 + m * p / 2))
    return float(z**2 / 2 / np.log(2))
