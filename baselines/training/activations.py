"""Activation checkpointing: recompute activations in the backward pass instead of storing them.

Chen, Xu, Zhang and Guestrin, Training Deep Nets with Sublinear Memory Cost, 2016 (arXiv:1604.06174). With the setting
`recompute`, only the inputs of each block of a network are stored (a block is an element of its outermost lists of
modules: a layer of a Transformer, a stage of a residual network). Losses and gradients are the same: the same noise is
drawn again, and running moments are updated once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from ...core.errors import ModelError
from ..replicas.rng import Rng


def list_blocks(network: nn.Module) -> list[nn.Module]:
    """The elements of a network's outermost lists of two modules or more."""
    network_blocks: list[nn.Module] = []
    for child in network.children():
        if isinstance(child, nn.ModuleList | nn.Sequential) and len(child) > 1:
            network_blocks += [layer for layer in child if next(layer.parameters(), None) is not None]
        else:
            network_blocks += list_blocks(child)
    return network_blocks


@contextmanager
def recompute_activations(network: nn.Module, rng: Rng) -> Iterator[None]:
    """The blocks of a network store no activations while the context lasts, which must include forward and backward
    pass. `ModelError` if there are no blocks."""
    network_blocks = list_blocks(network)
    if not network_blocks:
        raise ModelError("setting recompute: this network has no list of layers: leave it at false")
    for block in network_blocks:
        vars(block)["forward"] = _RecomputedForward(block, rng)
    try:
        yield
    finally:
        for block in network_blocks:
            del vars(block)["forward"]


class _RecomputedForward:
    """A block's forward pass with recomputed activations."""

    def __init__(self, block: nn.Module, rng: Rng) -> None:
        self.block, self.rng, self.inside = block, rng, False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        block, rng = self.block, self.rng
        if self.inside or not torch.is_grad_enabled():
            return type(block).forward(block, *args, **kwargs)
        # The block's current tensors: one replica's slices, if it is called for each.
        parameters, buffers = dict(block.named_parameters()), dict(block.named_buffers())
        began, again = rng.mark(), False

        def forward(*given: Any) -> Any:
            nonlocal again
            first, again, self.inside = not again, True, True
            moments = buffers if first else {name: value.clone() for name, value in buffers.items()}
            try:
                with nullcontext() if first else rng.replayed(began):
                    return functional_call(block, parameters | moments, given, kwargs)
            finally:
                self.inside = False

        return checkpoint(forward, *args, use_reentrant=False)
