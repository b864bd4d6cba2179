"""Batch normalisation by other statistics than the running ones of training."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from ..layers.norm import BatchNorm
from . import Data


@contextmanager
def use_batch_moments(network: nn.Module, momentum: float) -> Iterator[None]:
    """Batch normalisation by each batch's own moments, in evaluation too; the running ones move towards them by the
    share `momentum`."""
    norms = [module for module in network.modules() if isinstance(module, BatchNorm)]
    before = [(norm.training, norm.rng, norm.momentum) for norm in norms]
    for norm in norms:
        # Without its generator, which is silent in evaluation, a layer follows `training` alone.
        norm.training, norm.rng, norm.momentum = True, None, momentum
    try:
        yield
    finally:
        for norm, (training, rng, rate) in zip(norms, before, strict=True):
            norm.training, norm.rng, norm.momentum = training, rng, rate


@contextmanager
def interpolate_moments(network: nn.Module, share: Tensor) -> Iterator[None]:
    """In evaluation, batch normalisation by moments between the running ones and each batch's own, of which they have
    the share (K,); variances are without bias. A channel with a single value has its running variance."""

    def mix_moments(norm: BatchNorm, given: tuple[Tensor]) -> None:
        (x,) = given
        values = x.movedim(2, 1).flatten(2)
        batch = values.mean(2), values.var(2) if values.shape[2] > 1 else norm.running_var
        saved_moments[norm] = norm.running_mean, norm.running_var
        own = share.to(x)[:, None]
        norm.running_mean, norm.running_var = (
            old.lerp(new, own) for old, new in zip(saved_moments[norm], batch, strict=True)
        )

    def restore_moments(norm: BatchNorm, given: tuple[Tensor], output: Tensor) -> None:
        norm.running_mean, norm.running_var = saved_moments.pop(norm)

    saved_moments: dict[BatchNorm, tuple[Tensor, Tensor]] = {}
    norms = [module for module in network.modules() if isinstance(module, BatchNorm)]
    hooks = [norm.register_forward_pre_hook(mix_moments) for norm in norms]
    hooks += [norm.register_forward_hook(restore_moments) for norm in norms]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for norm, (mean, var) in saved_moments.items():
            norm.running_mean, norm.running_var = mean, var


@torch.no_grad()
def recompute_running_moments(network: nn.Module, data: Data, rows: int = 256) -> None:
    """Recompute the running moments for the network's present weights: means over the training rows' batches, without
    dropout and the like (Izmailov et al., UAI 2018, section 3). Rows count equally, whatever their weight."""
    if not any(isinstance(module, BatchNorm) for module in network.modules()):
        return
    replicas = len(next(network.parameters()))
    before = network.training
    network.eval()
    pieces = math.ceil(len(data) / rows)
    for piece in range(pieces):
        # Every n-th row: rows of one environment or class may be adjacent.
        inputs = [x[piece::pieces] for x in data.inputs]
        with use_batch_moments(network, 1 / (piece + 1)):
            network(*(x.expand(replicas, *x.shape) for x in inputs))
    network.train(before)
