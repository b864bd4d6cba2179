"""Stored copies of a network's weights: shared code of methods in weight space."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from ..training.optimiser_step import broadcast_values
from . import Build, Data, EmpiricalRisk, StepState
from ._norms import recompute_running_moments
from ._plain import split_steps


class RunningMean(nn.Module):
    """A tensor (K, ..) for each of some parameters, in saved buffers: copies of them at first."""

    updates: Tensor
    """How many values are in the mean, (K,)."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        super().__init__()
        for index, parameter in enumerate(parameters):
            self.register_buffer(f"of_{index}", parameter.detach().clone())
        self._count = len(parameters)
        self.register_buffer("updates", torch.zeros(len(parameters[0]), dtype=torch.int64))

    @property
    def values(self) -> list[Tensor]:
        return [getattr(self, f"of_{index}") for index in range(self._count)]

    @torch.no_grad()
    def take(self, parameters: Sequence[Tensor]) -> None:
        """Become a copy of `parameters`."""
        for value, parameter in zip(self.values, parameters, strict=True):
            value.copy_(parameter)
        self.updates += 1

    @torch.no_grad()
    def average(self, parameters: Sequence[Tensor]) -> None:
        """Update the mean with `parameters`."""
        self.updates += 1
        for value, parameter in zip(self.values, parameters, strict=True):
            value += (parameter - value) / broadcast_values(self.updates, value)

    @torch.no_grad()
    def merge(self, means: Sequence[Tensor], counts: Tensor) -> None:
        """Merge `means` of `counts` tensors, (K,) integers; a replica whose count is 0 does not change."""
        self.updates += counts
        for value, mean in zip(self.values, means, strict=True):
            share = broadcast_values(counts.to(value) / self.updates.clamp(min=1), value)
            value.copy_(torch.where(share > 0, value + (mean - value) * share, value))

    @torch.no_grad()
    def forget(self, which: Tensor) -> None:
        """Forget the mean, in the replicas of a mask (K,)."""
        self.updates.copy_(torch.where(which, 0, self.updates))

    @torch.no_grad()
    def put(self, parameters: Sequence[Tensor]) -> None:
        """Set `parameters` to the mean, in the replicas that have one."""
        for value, parameter in zip(self.values, parameters, strict=True):
            parameter.copy_(torch.where(broadcast_values(self.updates > 0, value), value, parameter))


@contextmanager
def preserve_values(parameters: Sequence[Tensor]) -> Iterator[None]:
    """Parameters may be changed within the context, and have their values again after it."""
    before = [parameter.detach().clone() for parameter in parameters]
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)


class WeightInterpolation(EmpiricalRisk):
    """Empirical risk whose weights, when training ends, lie between early and last ones: early + share (last - early),
    each parameter with a share of its own."""

    def set_up(self) -> None:
        steps, percent = self.about.steps, self.hyperparameters["early_percent"]
        self.early, _ = split_steps(steps, percent, self.about.algorithm)

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        self.start = RunningMean(list(network.parameters())).to(self.hyperparameters["lr"])
        if (body := getattr(network, "body", None)) is not None and hasattr(body, "probe_steps"):
            # As published: from the pretrained weights, with the head that was probed on them where one was.
            self.early = body.probe_steps
            if not self.early:
                self.start.take(list(network.parameters()))
        return network

    def after(self, network: Any, clock: StepState) -> None:
        if clock.total + 1 == self.early:
            self.start.take(list(network.parameters()))

    @abstractmethod
    def shares(self, network: nn.Module) -> list[Tensor]:
        """The interpolation coefficient of each parameter, 0 at the early and 1 at the last weights, (K,) each."""

    @torch.no_grad()
    def finish(self, network: Any, data: Data, answer: Callable[..., Tensor]) -> None:
        reached = self.start.updates > 0
        parameters = list(network.parameters())
        for parameter, early, share in zip(parameters, self.start.values, self.shares(network), strict=True):
            share = torch.where(reached, share, 1.0)  # a checkpoint from before the early step is unchanged
            parameter.copy_(early.lerp(parameter, broadcast_values(share, early)))
        recompute_running_moments(network, data)
