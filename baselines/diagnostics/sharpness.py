"""Adaptive sharpness: how much the loss rises where each weight is moved in proportion to its size.

    average:  E L(w + |w| d) - L(w),  d ~ N(0, sigma^2)
    worst:    max L(w + |w| d) - L(w)  over |d|_2 <= rho

elementwise over all trained parameters, with the mean loss over the rows. Andriushchenko et al., equation 1, without
their normalisation of logits; the worst case is Kwon et al.'s, equation 3. The maximum is not known: `worst` is the
best that projected gradient ascent finds from the first-order solution, and 0 where it finds none, so it is a lower
bound.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ..replicas.rng import normal, stream
from ..training.losses import gradients
from ._subject import Subject

CITATION = (
    "Andriushchenko, Croce, Müller, Hein and Flammarion, A Modern Look at the Relationship between Sharpness and "
    "Generalization, ICML 2023 (arXiv:2302.07011); Kwon, Kim, Park and Choi, ASAM: Adaptive Sharpness-Aware "
    "Minimization for Scale-Invariant Learning of Deep Neural Networks, ICML 2021 (arXiv:2102.11600)"
)
TASKS = ("classification", "sequence")
SIGMA, DRAWS = 0.1, 20
"""The standard deviation of weights in the average, as a share of each, and how many draws it is the mean of."""
RHO, ASCENTS = 0.5, 20
"""The radius of the worst case (Kwon et al.'s for CIFAR-10), and the steps of its ascent."""
STRIDE = 0.2
"""The length of a step of the ascent, as a share of rho."""


def measure(subject: Subject) -> dict[str, Tensor]:
    """average and worst, each (K,), in nats (or squared error)."""
    weights = [parameter.detach().clone() for parameter in subject.parameters]
    with torch.no_grad():
        there = subject.mean_loss().double()
    found = {"average": _average(subject, weights) - there, "worst": _worst(subject, weights, there)}
    _move(subject, weights, [torch.zeros_like(weight) for weight in weights])
    return found


@torch.no_grad()
def _move(subject: Subject, weights: list[Tensor], shares: list[Tensor]) -> None:
    """Put the parameters to w + |w| d."""
    for parameter, weight, share in zip(subject.parameters, weights, shares, strict=True):
        parameter.copy_(weight + weight.abs() * share)


@torch.no_grad()
def _average(subject: Subject, weights: list[Tensor]) -> Tensor:
    """The mean loss (K,) over random moves."""
    total = torch.zeros(subject.replicas, dtype=torch.float64, device=weights[0].device)
    for draw in range(DRAWS):
        keys = stream(subject.stack.keys, "sharpness", draw)
        shares = [
            SIGMA * normal(stream(keys, "weight", place), weight.shape[1:], weight.dtype)
            for place, weight in enumerate(weights)
        ]
        _move(subject, weights, shares)
        total += subject.mean_loss()
    return total / DRAWS


def _worst(subject: Subject, weights: list[Tensor], there: Tensor) -> Tensor:
    """How much the loss rises at the worst point found, (K,)."""
    shares = [torch.zeros_like(weight) for weight in weights]
    best = torch.zeros_like(there)
    for ascent in range(ASCENTS + 1):
        _move(subject, weights, shares)
        losses = subject.mean_loss()
        best = torch.maximum(best, losses.detach().double() - there)
        by_share = [g * w.abs() for g, w in zip(gradients(losses, subject.parameters), weights, strict=True)]
        reach = RHO if ascent == 0 else STRIDE * RHO
        uphill = _times(by_share, reach / _norm(by_share))
        shares = [share + step for share, step in zip(shares, uphill, strict=True)]
        shares = _times(shares, (RHO / _norm(shares)).clamp(max=1))
    _move(subject, weights, shares)
    with torch.no_grad():
        return torch.maximum(best, subject.mean_loss().double() - there)


def _norm(values: list[Tensor]) -> Tensor:
    """The norm of each replica's values, (K,), above 0 so that one may divide by it."""
    norm = torch.stack([value.flatten(1).square().sum(1) for value in values]).sum(0).sqrt()
    return norm.clamp(min=torch.finfo(norm.dtype).tiny)


def _times(values: list[Tensor], by: Tensor) -> list[Tensor]:
    """Values of each replica times its number, (K,)."""
    return [value * by.view(-1, *[1] * (value.ndim - 1)) for value in values]
