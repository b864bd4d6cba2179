"""Optimiser steps: each replica's gradients are clipped and passed to an optimiser at the scheduled learning rate."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from ...core.plugins import load_module
from ..replicas.hyperparameters import Hyperparameters


class Optimiser(Protocol):
    """The interface of a file of `optimisers/`: `Optimiser(parameters, rates, hyperparameters)`.

    parameters: each (K, ..). rates: the K base learning rates. `weight_decay` is in `hyperparameters`."""

    def step(self, factor: float) -> None:
        """Make one step along the parameters' `.grad`, at `factor` times each replica's learning rate."""
        ...

    def state(self) -> dict[str, Any]:
        """The state between steps: tensors (K, ..) by name, and `steps`."""
        ...

    def load(self, state: dict[str, Any]) -> None: ...


class OptimiserStep:
    """An optimiser of some parameters of a replica stack, with clipping, sharpness-aware steps and a schedule."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        self.parameters, self.rates, self.hyperparameters = list(parameters), list(rates), hyperparameters
        self.clips = any(hyperparameters.exact("clip"))
        self.sharp = any(hyperparameters.exact("sharpness"))
        self.schedule = load_module("baselines/schedules", hyperparameters["schedule"], "schedule")
        self.factor = 1.0
        self.restart()

    def restart(self) -> None:
        """Reset the moments, as published for penalties that are switched on during training."""
        kind = load_module("baselines/optimisers", self.hyperparameters["optimiser"], "optimiser").Optimiser
        self.optimiser: Optimiser = kind(self.parameters, self.rates, self.hyperparameters)

    def at(self, step: int, steps: int) -> None:
        """Set the schedule to `step` of `steps` (from 0): linear warm-up over the share `warmup_percent` of all steps,
        then the schedule over the rest."""
        rise = self.hyperparameters["warmup_percent"] * steps / 100
        if step < rise:
            self.factor = float((step + 1) / rise)
        else:
            self.factor = float(self.schedule.factor(step - rise, max(1.0, steps - rise), self.hyperparameters))

    def step(self, closure: Callable[[], Tensor]) -> Tensor:
        """Make one step to reduce the losses (K,) that `closure` computes; return them. `closure` may backpropagate in
        pieces itself. With `sharpness` rho > 0, use the gradient at p + rho g / |g| instead (SAM: Foret et al., ICLR
        2021, arXiv:2010.01412, equation 2), each replica with its own norm."""
        self.clear()
        losses = closure()
        if losses.requires_grad:
            losses.sum().backward()  # type: ignore[no-untyped-call]
        if self.sharp:
            self._sharpen(closure)
        self.follow()
        return losses.detach()

    def clear(self) -> None:
        """Remove the parameters' gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def _sharpen(self, closure: Callable[[], Tensor]) -> None:
        """Replace the gradients by those of a sharpness-aware step."""
        before = [parameter.clone() for parameter in self.parameters]
        share = self.hyperparameters["sharpness"] / self.norms().clamp(min=1e-12)
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.add_(parameter.grad * broadcast_values(share, parameter.grad))
        self.clear()
        with torch.enable_grad():
            losses = closure()
            if losses.requires_grad:
                losses.sum().backward()  # type: ignore[no-untyped-call]
        for parameter, value in zip(self.parameters, before, strict=True):
            parameter.copy_(value)

    def follow(self, gradients: Sequence[Tensor | None] | None = None) -> None:
        """Make one step of the optimiser along `gradients` (default: the parameters' own), clipped."""
        if gradients is not None:
            for parameter, gradient in zip(self.parameters, gradients, strict=True):
                # torch's fused optimisers silently step wrongly along a gradient with another memory layout.
                parameter.grad = None if gradient is None else gradient.contiguous()
        if self.clips:
            self._clip()
        shares = [getattr(parameter, "rate_share", None) for parameter in self.parameters]
        slower = [
            (parameter, parameter.detach().clone(), share)
            for parameter, share in zip(self.parameters, shares, strict=True)
            if share is not None
        ]
        self.optimiser.step(self.factor)
        with torch.no_grad():
            for parameter, before, share in slower:  # a step is proportional to its rate, whatever the optimiser
                parameter.copy_(before.lerp(parameter, broadcast_values(share.to(before), before)))

    @torch.no_grad()
    def norms(self) -> Tensor:
        """The norm of each replica's gradient, (K,)."""
        squares = [p.grad.flatten(1).square().sum(1) for p in self.parameters if p.grad is not None]
        return torch.stack(squares).sum(0).sqrt()

    @torch.no_grad()
    def _clip(self) -> None:
        most = self.hyperparameters["clip"]
        share = (most / (self.norms() + 1e-6)).clamp(max=1.0)
        share = torch.where(most > 0, share, 1.0)
        for parameter in self.parameters:
            if parameter.grad is not None:
                parameter.grad *= broadcast_values(share, parameter.grad)


def step_all(optimiser_steps: Iterable[OptimiserStep], closure: Callable[[], Tensor]) -> Tensor:
    """Make one step of each on the same losses (K,), which `closure` computes once; return them."""
    each = list(optimiser_steps)
    for optimiser_step in each:
        optimiser_step.clear()
    losses = closure()
    losses.sum().backward()  # type: ignore[no-untyped-call]
    for optimiser_step in each:
        optimiser_step.follow()
    return losses.detach()


def exclude_parameters(network: nn.Module, excluded: Iterable[nn.Parameter]) -> list[nn.Parameter]:
    """A network's parameters without the excluded ones, in its order."""
    ids = {id(parameter) for parameter in excluded}
    return [parameter for parameter in network.parameters() if id(parameter) not in ids]


def broadcast_values(values: Tensor, like: Tensor) -> Tensor:
    """Reshape one value a replica (K,) to as many axes as `like`."""
    return values.view(-1, *[1] * (like.ndim - 1))
