"""The progressive loss for recurrent networks that iterate longer on harder inputs (deep thinking).

Bansal et al., NeurIPS 2022 (arXiv:2202.05826), algorithm 1, for at most m iterations in training:

    L = (1 - alpha) CE(h(f^m(x)), y) + alpha CE(h(f^k(s)), y),   s = f^n(x) without its gradient,
    n uniform in 0 .. m - 1,   k uniform in 1 .. m - n.

The second part teaches the network to improve on whatever state it is in, and not to count its iterations:
"overthinking" does no harm, and more iterations at test time solve larger problems. Every replica draws its own n and
k. As in the released code the gradient of s is cut, so that only the k iterations after it, and the input they recall,
are taught; one part is not computed where no replica weighs it.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..replicas.rng import draw_uniform
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, StepState

KIND = "easy-to-hard"
CITATION = (
    "Bansal, Schwarzschild, Borgnia, Emam, Huang, Goldblum and Goldstein, End-to-end algorithm synthesis with "
    "recurrent networks: logical extrapolation without overthinking, NeurIPS 2022 (arXiv:2202.05826)"
)
TASKS = ("sequence",)
SETTINGS: dict[str, Any] = {"alpha": 1.0, "clip": 1.0}
"""alpha: the weight of the progressive part; 1 is the paper's for prefix sums (0.01 for mazes, 0.5 for chess)."""
SEARCH: dict[str, Any] = {"alpha": ["choice", 0.0, 0.01, 0.1, 0.5, 1.0]}


class Algorithm(BaseAlgorithm):
    def assemble(self, build: Build) -> Any:
        network = super().assemble(build)
        if not hasattr(network, "think"):
            raise ModelError("progressive needs a network that iterates one block: use the network deep_thinking")
        return network

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        alpha = self.hyperparameters["alpha"]
        losses = torch.zeros_like(alpha)
        if bool((alpha < 1).any()):
            losses = losses + (1 - alpha) * self._risk(network(*batch.inputs), batch)
        if bool((alpha > 0).any()):
            skipped, taught = self.drawn(network.iterations, clock)
            losses = losses + alpha * self._risk(
                network.head(run_iterations(network, batch.inputs[0], skipped, taught)), batch
            )
        return losses

    def drawn(self, most: int, clock: StepState) -> tuple[Tensor, Tensor]:
        """n and k of each replica, both (K,) int64."""
        first, second = draw_uniform(clock.draw("progressive"), (2,), torch.float64).unbind(1)
        skipped = (first * most).long()
        return skipped, 1 + (second * (most - skipped)).long()

    @staticmethod
    def _risk(logits: Tensor, batch: Batch) -> Tensor:
        return average_over_batch(cross_entropy(logits, batch.target), batch)


def run_iterations(network: Any, source: Tensor, skipped: Tensor, taught: Tensor) -> Tensor:
    """Features (K, n, T, width) after `skipped` iterations without gradient and `taught` with it, both (K,)."""
    x, state, seen = network.begin(source)
    skipped, last = (count.view(-1, 1, 1, 1) for count in (skipped, skipped + taught))
    blind = int(skipped.min())
    step: Callable[..., Tensor] = network.think
    with torch.no_grad():
        for _ in range(blind):
            state = step(x, state, seen)
    for done in range(blind, int(last.max())):
        after = step(x, state, seen)
        after = torch.where(done < skipped, after.detach(), after)
        state = torch.where(done < last, after, state)
    return network.settled(state, seen)
