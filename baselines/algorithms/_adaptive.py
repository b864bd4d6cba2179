"""Shared code of test-time adaptation: empirical risk in training, then learning from the test inputs."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..layers.norm import BatchNorm, LayerNorm
from ..training.optimiser_step import broadcast_values
from . import Build, Data, EmpiricalRisk
from ._weights import RunningMean


class TestTimeAdaptation(EmpiricalRisk):
    """Predicts as the network does until training has ended, so that validation changes nothing; adapts afterwards.

    Subclasses define the preparation at the end of training, the prediction and update on a batch, and the reset."""

    adapts = True
    ready: Tensor
    """Whether training has ended, (K,) bool."""

    def set_up(self) -> None:
        self.register_buffer("ready", torch.zeros(self.about.replicas, dtype=torch.bool))

    def finish(self, network: Any, data: Data, answer: Callable[..., Tensor]) -> None:
        self.prepare(network, data)
        self.reset(network)
        self.ready.fill_(True)

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        if bool(self.ready.all()):
            return self.adapted(network, *inputs)
        return network(*inputs)

    def prepare(self, network: Any, data: Data) -> None:
        """Called once, when training has ended."""

    @abstractmethod
    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        """The logits of a batch (K, n, ..), from which the network also learns."""


class OnlineAdam(nn.Module):
    """Adam (Kingma and Ba, ICLR 2015, algorithm 1, its defaults) whose moments are saved buffers, for the steps that
    are taken while predicting; rates are the replicas' own."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        super().__init__()
        zeros = [torch.zeros_like(parameter) for parameter in parameters]
        self.first, self.second = RunningMean(zeros), RunningMean(zeros)

    def reset(self) -> None:
        """Forget all steps."""
        for buffer in self.buffers():
            buffer.zero_()

    @torch.no_grad()
    def step(self, parameters: Sequence[Tensor], gradients: tuple[Tensor, ...], rates: Tensor) -> None:
        """One step of parameters (K, ..) down gradients, at rates (K,)."""
        steps = self.first.updates
        steps += 1
        for p, g, m, v in zip(parameters, gradients, self.first.values, self.second.values, strict=True):
            m.lerp_(g, 0.1)
            v.lerp_(g.square(), 0.001)
            now = broadcast_values(steps.to(p.dtype), p)
            p -= broadcast_values(rates, p) * (m / (1 - 0.9**now)) / ((v / (1 - 0.999**now)).sqrt() + 1e-8)


class OnlineMomentum(nn.Module):
    """Gradient descent with momentum, v <- m v + g, as torch.optim.SGD's, whose v are saved buffers, for the steps that
    are taken while predicting."""

    def __init__(self, parameters: Sequence[Tensor], momentum: float = 0.9) -> None:
        super().__init__()
        self.momentum = momentum
        self.velocity = RunningMean([torch.zeros_like(parameter) for parameter in parameters])

    def reset(self, which: Tensor | None = None) -> None:
        """Forget all steps, of the replicas `which` (K,) bool."""
        for buffer in self.velocity.values:
            buffer.zero_() if which is None else buffer.masked_fill_(broadcast_values(which, buffer), 0.0)

    @torch.no_grad()
    def step(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], rates: Tensor, which: Tensor | None = None
    ) -> None:
        """One step of parameters (K, ..) down gradients, at rates (K,), of the replicas `which` (K,) bool."""
        for p, g, v in zip(parameters, gradients, self.velocity.values, strict=True):
            moved = self.momentum * v + g
            v.copy_(moved if which is None else torch.where(broadcast_values(which, v), moved, v))
            p -= broadcast_values(rates if which is None else rates * which, p) * v


class OnlineAdaptation(TestTimeAdaptation):
    """Steps on some of the network's parameters while predicting, from those of training on. Here they are the scales
    and shifts of the normalisation layers."""

    optimiser_class: type[OnlineAdam] | type[OnlineMomentum]
    """Of the steps while predicting."""
    start: RunningMean

    def adapted_parameters(self, network: nn.Module) -> list[Tensor]:
        return list_affine_parameters(network)

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        parameters, like = self.adapted_parameters(network), self.hyperparameters["lr"]
        if not parameters:
            raise ModelError(
                f"{self.about.algorithm} adapts normalisation layers, and this network has none: use resnet"
            )
        self.start, self.optimiser = RunningMean(parameters).to(like), self.optimiser_class(parameters).to(like)
        return network

    def prepare(self, network: Any, data: Data) -> None:
        self.start.take(self.adapted_parameters(network))

    def reset(self, network: Any) -> None:
        self.start.put(self.adapted_parameters(network))
        self.optimiser.reset()


def list_affine_parameters(network: nn.Module) -> list[Tensor]:
    """The scales and shifts of a network's normalisation layers."""
    norms = [module for module in network.modules() if isinstance(module, (BatchNorm, LayerNorm))]
    return [parameter for norm in norms for parameter in norm.parameters(recurse=False)]


def entropy(logits: Tensor) -> Tensor:
    """Of the softmax over the last axis."""
    logs = logits.log_softmax(-1)
    return -(logs.exp() * logs).sum(-1)
