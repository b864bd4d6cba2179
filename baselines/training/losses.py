"""Losses of single rows and their means, with the replica axis kept."""

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..encoding.encoding import PAD
from .sampler import Batch


def cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Cross-entropy of each target: logits (K, n, classes) with targets (K, n), or (K, n, T, words) with (K, n, T);
    returns the target's shape. For targets that are shares of all classes, (K, n, classes) as floats: (K, n)."""
    if target.is_floating_point():
        return -(target * logits.log_softmax(-1)).sum(-1)
    return F.cross_entropy(logits.flatten(0, -2), target.flatten(), reduction="none").view(target.shape)


def is_numeric_target(target: Tensor, outputs: Tensor) -> bool:
    """Whether targets are numbers, one a row: (K, n) for outputs (K, n, 1). Shares of classes have as many values as
    outputs, and ids of classes and words are integers."""
    return target.is_floating_point() and target.ndim < outputs.ndim


def compute_task_loss(outputs: Tensor, target: Tensor) -> Tensor:
    """The training loss of each target: the squared error for numbers, (K, n); else the cross-entropy. The shapes of
    the target and the outputs tell which."""
    return (outputs[..., 0] - target).square() if is_numeric_target(target, outputs) else cross_entropy(outputs, target)


def label_smoothing_loss(logits: Tensor, target: Tensor, epsilon: Tensor) -> Tensor:
    """Cross-entropy to (1 - e) one-hot + e / C (Szegedy et al., CVPR 2016), with e of each replica, (K,), which may be
    negative (Wei et al., ICML 2022, arXiv:2106.04149)."""
    logs = logits.log_softmax(-1)
    shares = target.is_floating_point()
    own = -(target * logs).sum(-1) if shares else -logs.gather(-1, target[..., None])[..., 0]
    e = epsilon.view(-1, *[1] * (own.ndim - 1))
    return (1 - e) * own - e * logs.mean(-1)


def squared_error(logits: Tensor, target: Tensor) -> Tensor:
    """The mean over classes of each target's squared error to the one-hot label, or to shares of all classes."""
    one_hot = target if target.is_floating_point() else F.one_hot(target, logits.shape[-1])
    return (logits - one_hot.to(logits.dtype)).square().mean(dim=-1)


def reduce_to_rows(errors: Tensor, batch: Batch) -> Tensor:
    """Errors of rows, (K, n), from errors of targets: for texts the mean over their tokens, without PAD."""
    if errors.ndim == 2:
        return errors
    real = (batch.target != PAD).to(errors.dtype)
    return (errors * real).sum(-1) / real.sum(-1).clamp(min=1)


def average_over_batch(errors: Tensor, batch: Batch) -> Tensor:
    """The mean over all targets of the batch, (K,): rows count by their weight, PAD is ignored."""
    if errors.shape[:2] != batch.target.shape[:2]:
        raise ModelError(f"errors of shape {tuple(errors.shape)}: give one of each target, {tuple(batch.target.shape)}")
    weight = None if batch.weight is None else batch.weight.to(errors.dtype)
    if errors.ndim == 2:
        return errors.mean(1) if weight is None else (errors * weight).sum(1) / weight.sum(1)
    real = (batch.target != PAD).to(errors.dtype)
    real = real if weight is None else real * weight[..., None]
    return (errors * real).flatten(1).sum(1) / real.flatten(1).sum(1)


def average_by_environment(rows: Tensor, batch: Batch) -> Tensor:
    """The mean of row errors (K, n) in each environment of the batch, (K, E)."""
    assert batch.environments, "only batches drawn by environment have equal shares of them"
    return rows.view(len(rows), batch.environments, -1).mean(-1)


def group_by_environment(values: Tensor, batch: Batch) -> Tensor:
    """Values of rows (K, n, ..) by environment, (K, E, n / E, ..)."""
    return values.view(len(values), batch.environments, -1, *values.shape[2:])


def average_per_replica(values: Tensor) -> Tensor:
    """The mean of all values of a replica: (K, ..) to (K,)."""
    return values.flatten(1).mean(1) if values.ndim > 1 else values


def compute_gradients(losses: Tensor, parameters: list[Tensor], create_graph: bool = False) -> tuple[Tensor, ...]:
    """The gradient of each replica's loss with respect to its own parameters: each (K, ..) as the parameter. Replicas
    share nothing, so the gradient of the sum gives all of them at once."""
    raw_gradients = torch.autograd.grad(losses.sum(), parameters, create_graph=create_graph, allow_unused=True)
    return tuple(torch.zeros_like(p) if g is None else g for g, p in zip(raw_gradients, parameters, strict=True))
