"""Mixtures of two Gaussians on the line, fitted to each replica's values by expectation maximisation."""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDS = 10
"""Iterations of Lloyd's algorithm, and of expectation maximisation: a fixed number, so that no replica waits for
another's convergence. DivideMix's released code stops at ten."""
FLOOR = 5e-4
"""Added to the variances, as in that code."""


def compute_lower_posterior(values: Tensor) -> Tensor:
    """The posterior probability that each value (K, N) comes from the component of the lower mean, (K, N) float64.

    The responsibilities at first are those of 2-means, begun at the least and the largest value."""
    x = values.double()
    share = _cluster_in_two(x)
    for _ in range(ROUNDS):
        share = _run_e_step(x, *_run_m_step(x, share))
    fitted = _run_m_step(x, share)
    lower = fitted[1].argmin(1)[:, None, None].expand(-1, x.shape[1], 1)
    return _run_e_step(x, *fitted).gather(2, lower)[..., 0]


def _cluster_in_two(x: Tensor) -> Tensor:
    """Which of two clusters each value (K, N) belongs to, (K, N, 2)."""
    centres = torch.stack([x.amin(1), x.amax(1)], dim=1)
    for _ in range(ROUNDS):
        centres = _run_m_step(x, _assign_nearest(x, centres))[1]
    return _assign_nearest(x, centres)


def _assign_nearest(x: Tensor, centres: Tensor) -> Tensor:
    upper = (x > centres.mean(1, keepdim=True)).double()
    return torch.stack([1 - upper, upper], dim=-1)


def _run_m_step(x: Tensor, share: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Weights, means and variances, (K, 2) each, for responsibilities (K, N, 2)."""
    # A component without rows still has finite parameters.
    rows = share.sum(1) + 10 * torch.finfo(share.dtype).eps
    mean = (share * x[..., None]).sum(1) / rows
    variance = (share * (x[..., None] - mean[:, None]).square()).sum(1) / rows + FLOOR
    return rows / rows.sum(1, keepdim=True), mean, variance


def _run_e_step(x: Tensor, weight: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """Responsibilities (K, N, 2) under the mixture."""
    distance = (x[..., None] - mean[:, None]).square() / variance[:, None]
    return (weight.log()[:, None] - (distance + variance.log()[:, None]) / 2).softmax(-1)
