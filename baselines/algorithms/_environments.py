"""Environments of a batch: the rows of some of them, the risk of each, and gradients of each by itself."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..training.losses import average_by_environment, compute_gradients, compute_task_loss, reduce_to_rows
from . import BaseAlgorithm, Batch, Batches, OptimiserSteps, StepState
from ._rows import take_rows


def _take_rows_of_batch(batch: Batch, take: Callable[[Tensor], Tensor], environments: int) -> Batch:
    assert batch.weight is None, "batches drawn by environment have no weights"
    return replace(
        batch,
        inputs=tuple(take(x) for x in batch.inputs),
        target=take(batch.target),
        rows=take(batch.rows),
        group=None if batch.group is None else take(batch.group),
        environments=environments,
    )


def select_environments(batch: Batch, which: Tensor) -> Batch:
    """The rows of the environments that each replica chose, in that order. which: (K, some) numbers of environments;
    the batch must hold equal shares of all."""
    assert batch.environments, "only batches drawn by environment have equal shares of them"
    share = batch.rows.shape[1] // batch.environments
    places = (which[..., None] * share + torch.arange(share, device=which.device)).flatten(1)
    return _take_rows_of_batch(batch, lambda values: take_rows(values, places), which.shape[1])


def split_by_environment(batch: Batch) -> Iterator[Batch]:
    """The batch of each environment alone."""
    share = batch.target.shape[1] // batch.environments
    for start in range(0, batch.environments * share, share):
        yield _take_rows_of_batch(batch, itemgetter((slice(None), slice(start, start + share))), 1)


def compute_environment_risks(network: Any, batch: Batch) -> Tensor:
    """The mean loss (`compute_task_loss`) of each environment of the batch, (K, E)."""
    return average_by_environment(reduce_to_rows(compute_task_loss(network(*batch.inputs), batch.target), batch), batch)


def compute_risks_and_gradients(
    network: Any, batch: Batch, parameters: Sequence[Tensor], create_graph: bool = False
) -> tuple[Tensor, list[Tensor]]:
    """The risk of each environment, (K, E), and its gradient by each parameter, (K, E, ..) each.

    Environments pass through the network one by one, so that no gradient is taken through another's rows."""
    each_risk, each_gradient = [], []
    for alone in split_by_environment(batch):
        risk = compute_environment_risks(network, alone)[:, 0]
        each_gradient.append(compute_gradients(risk, list(parameters), create_graph))
        each_risk.append(risk)
    return torch.stack(each_risk, 1), [torch.stack(gradients, 1) for gradients in zip(*each_gradient, strict=True)]


def average_masked_gradients(each: Tensor, mask: Tensor) -> Tensor:
    """The mean over environments of one parameter's gradients, (K, E, ..), times its mask (K, ..), divided by the mean
    of the mask: what is left out is made up for."""
    share = mask.flatten(1).mean(1) if mask.ndim > 1 else mask
    return each.mean(1) * mask / share.clamp(min=1e-10).view(-1, *[1] * (mask.ndim - 1))


class MaskedGradient(BaseAlgorithm):
    """Steps along the mean gradient of environments, of which some coordinates are left out or made small."""

    by_environment = True

    def set_up(self) -> None:
        if any(self.hyperparameters.exact("sharpness")):
            raise ModelError(f"setting sharpness: {self.about.algorithm} computes gradients of its own: leave it at 0")

    @abstractmethod
    def masked(self, each: Tensor) -> Tensor:
        """The gradients of one parameter in every environment, (K, E, ..), as one to follow, (K, ..)."""

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        """The mean risk, which is watched; what is followed is its masked gradient."""
        return compute_environment_risks(network, batch).mean(1)

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        [(batch, _)] = batches()
        step = optimiser_steps["main"]
        risks, gradients = compute_risks_and_gradients(network, batch, step.parameters)
        with torch.no_grad():
            step.follow([self.masked(gradient) for gradient in gradients])
        return risks.detach().mean(1)
