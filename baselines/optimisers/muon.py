"""Muon: momentum whose direction is orthogonalised, for the matrices of hidden layers; AdamW for everything else.

    m <- mu m + (1 - mu) g,   O = NewtonSchulz((1 - mu) g + mu m),   p <- (1 - lr wd) p - 0.2 sqrt(max(rows, columns))
    lr O

Jordan et al., Muon: An optimizer for hidden layers in neural networks, 2024 (github.com/KellerJordan/Muon): Nesterov's
momentum and five steps of a quintic iteration that brings the singular values of each replica's matrix near 1. The
factor before lr makes O as large as AdamW's steps are (Liu et al., Muon is Scalable for LLM Training, 2025,
arXiv:2502.16982, equation 4), so one rate, one weight decay and one schedule serve both.

A kernel of a convolution is a matrix of outputs by everything else; what a layer stores as one matrix is treated as one
(keys above values in attention, the three taps of deep_thinking). Heads, embeddings, the stacked gates of recurrent
layers, biases and gains are AdamW's. The iteration runs in the parameters' own precision, not in bfloat16, so that a
replica's result is the same alone and among many in float64 too.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..layers.hidden import is_hidden
from ..replicas.hyperparameters import Hyperparameters
from ..training.optimiser_step import broadcast_values
from . import adamw
from ._averaged import AveragingOptimiser

SETTINGS: dict[str, Any] = {"momentum": 0.95, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
"""momentum: of the matrices. beta1, beta2, eps: AdamW's."""

_COEFFICIENTS = 3.4445, -4.7750, 2.0315
_STEPS = 5
_LEAST = 1e-7


def orthogonalise_matrices(matrices: Tensor) -> Tensor:
    """Matrices (K, rows, columns) with the same singular vectors, and singular values of about 1: between 0.7 and 1.2,
    where they were not tiny."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.transpose(1, 2).contiguous() if tall else matrices
    norms = x.flatten(1).square().sum(1).sqrt().clamp(min=_LEAST)
    x = x / norms[:, None, None]
    a, b, c = _COEFFICIENTS
    for _ in range(_STEPS):
        gram = torch.bmm(x, x.transpose(1, 2))
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.transpose(1, 2) if tall else x


class _Matrices(AveragingOptimiser):
    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        super().__init__(parameters, rates, hyperparameters)
        self.momentum = self.per_replica(hyperparameters.exact("momentum")).to(self.parameters[0].dtype)

    def direction(self, average: Tensor, gradient: Tensor) -> Tensor:
        momentum = broadcast_values(self.momentum, gradient)
        average.lerp_(gradient, 1 - momentum)
        ahead = gradient.lerp(average, momentum).flatten(2)
        size = 0.2 * math.sqrt(max(ahead.shape[1:]))
        return (orthogonalise_matrices(ahead) * size).reshape(gradient.shape)


class Optimiser:
    """`_Matrices` and AdamW, each of its own part of the parameters."""

    def __init__(
        self, parameters: Sequence[nn.Parameter], rates: Sequence[float], hyperparameters: Hyperparameters
    ) -> None:
        self.parts: dict[str, Any] = {}
        if matrices := [p for p in parameters if is_hidden(p)]:
            self.parts["matrices"] = _Matrices(matrices, rates, hyperparameters)
        if others := [p for p in parameters if not is_hidden(p)]:
            self.parts["others"] = adamw.Optimiser(others, rates, hyperparameters)

    def step(self, factor: float) -> None:
        """One step along the parameters' `.grad`, at `factor` of each replica's learning rate."""
        for part in self.parts.values():
            part.step(factor)

    def state(self) -> dict[str, Any]:
        """The state between steps: tensors (K, ..), and how many steps there were."""
        return {f"{name}/{key}": value for name, part in self.parts.items() for key, value in part.state().items()}

    def load(self, state: dict[str, Any]) -> None:
        """Restore a state that `state` returned."""
        for name, part in self.parts.items():
            start = f"{name}/"
            part.load({key.removeprefix(start): value for key, value in state.items() if key.startswith(start)})
