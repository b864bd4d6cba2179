"""Replicas trained stacked, and the same replicas trained alone."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from farshift.baselines.replicas.rng import Rng, make_keys
from farshift.baselines.replicas.stacked import attach_rng, stack_networks
from torch import Tensor, nn


def built(make: Callable[[], Any], replicas: int, dtype: torch.dtype = torch.float64) -> Any:
    """A stack of fresh networks, one seed each."""
    result = []
    for seed in range(replicas):
        torch.manual_seed(seed)
        result.append(make().to(dtype))
    return stack_networks(result)


def trained(network: Any, inputs: tuple[Tensor, ...], target: Tensor, names: list[str], steps: int) -> Any:
    """AdamW on the cross-entropy of each replica; inputs (K, n, ..) and target (K, n, ..)."""
    noise = Rng(make_keys(names))
    attach_rng(network, noise)
    optimiser = torch.optim.AdamW(network.parameters(), lr=3e-3)
    for step in range(steps):
        noise.at(step)
        logits = network(*inputs)
        losses = F.cross_entropy(logits.flatten(0, -2), target.flatten(), reduction="none").view(len(logits), -1)
        optimiser.zero_grad()
        losses.mean(dim=1).sum().backward()
        optimiser.step()
    return network


def agrees(network: nn.Module, categories: Tensor, numbers: Tensor) -> bool:
    """Whether a classifier is its head on its features, which are as wide as it says, and differentiable in x."""
    full: Any = network
    x = full.embed(categories, numbers).detach().requires_grad_()
    features = full.encode(x)
    (slope,) = torch.autograd.grad(features.square().sum(), x)
    return (
        features.shape == (*categories.shape[:2], full.width)
        and bool(slope.abs().sum() > 0)
        and torch.equal(full(categories, numbers), full.head(features))
    )
