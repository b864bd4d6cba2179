"""Style-agnostic networks (SagNet): the label is predicted from the content of features, with randomised style.

Style is the mean and deviation of a row's feature vector, content what is left without them.

    content:  L_c = CE(head(content of x, style of x mixed with another row's))
    style:    L_s = CE(style_head(content of another row, style of x))
    network:  min  L_c + lambda L_a      L_a = CE(style_head(the same), uniform)      style head:  min  L_s

Nam et al., CVPR 2021, at the last features, as in DomainBed (ICLR 2021, arXiv:2007.01434). A trap of that code that is
avoided: it takes steps on L_c and on lambda L_a in turn with one Adam, which rescales both by moments that mix them, so
that lambda is not a weight; here one step follows the gradient of the sum.
"""

from typing import Any

import torch
from torch import Tensor

from ..layers.linear import Linear
from ..replicas.rng import draw_permutations, draw_uniform
from ..training.losses import average_over_batch, cross_entropy
from ..training.optimiser_step import OptimiserStep, exclude_parameters
from . import BaseAlgorithm, Batch, Batches, Build, MakeOptimiserStep, OptimiserSteps, StepState
from ._rows import take_rows

KIND = "domain"
CITATION = "Nam et al., Reducing domain gap by reducing style bias, CVPR 2021 (arXiv:1910.11645)"
SETTINGS: dict[str, Any] = {"adversary": 0.1}
"""adversary: lambda."""
SEARCH: dict[str, Any] = {"adversary": ["log10", -2, 1]}

EPSILON = 1e-5


def compute_style(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of each row's features (K, n, width): each (K, n, 1)."""
    return x.mean(-1, keepdim=True), x.var(-1, keepdim=True)


def compute_content(x: Tensor) -> Tensor:
    """Features (K, n, width) without their style."""
    middle, variance = compute_style(x)
    return (x - middle) / (variance + EPSILON).sqrt()


def randomise_style(x: Tensor, order: Tensor, share: Tensor) -> Tensor:
    """A row's content in a style mixed from `share` (K, n, 1) of its own and the rest of another row's."""
    middle, variance = (share * own + (1 - share) * take_rows(own, order) for own in compute_style(x))
    return compute_content(x) * (variance + EPSILON).sqrt() + middle


def randomise_content(x: Tensor, order: Tensor) -> Tensor:
    """Another row's content, without gradient, in the row's own style."""
    middle, variance = compute_style(x)
    return take_rows(compute_content(x), order).detach() * (variance + EPSILON).sqrt() + middle


class Algorithm(BaseAlgorithm):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        network.style_head = self.about.each(lambda: Linear(network.width, self.about.outputs), "style head")
        return network

    def optimiser_steps(self, network: Any, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        of_style = [*network.style_head.parameters()]
        rest = exclude_parameters(network, of_style)
        return {"main": optimiser_step(rest, "lr"), "style": optimiser_step(of_style, "lr")}

    def _by_style(self, network: Any, features: Tensor, clock: StepState, draw: str) -> Tensor:
        """Logits that see the rows' styles alone, (K, n, classes)."""
        order = draw_permutations(clock.draw(draw), features.shape[1])
        return network.style_head(randomise_content(features, order))

    def style_loss(self, network: Any, features: Tensor, batch: Batch, clock: StepState) -> Tensor:
        """L_s on fixed features (K, n, width), (K,)."""
        return average_over_batch(cross_entropy(self._by_style(network, features, clock, "style"), batch.target), batch)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        features = network.encode(network.embed(*batch.inputs))
        rows = features.shape[1]
        order = draw_permutations(clock.draw("content"), rows)
        share = draw_uniform(clock.draw("share"), (rows, 1), features.dtype)
        risk = average_over_batch(
            cross_entropy(network.head(randomise_style(features, order, share)), batch.target), batch
        )
        unsure = -self._by_style(network, features, clock, "adversary").log_softmax(-1).mean(-1)
        return risk + self.hyperparameters["adversary"] * average_over_batch(unsure, batch)

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        for batch, _ in batches():
            self._learn_style(network, batch, clock, optimiser_steps["style"])
        return super().update(network, batches, clock, optimiser_steps)

    def _learn_style(self, network: Any, batch: Batch, clock: StepState, optimiser_step: OptimiserStep) -> None:
        with torch.no_grad():
            features = network.encode(network.embed(*batch.inputs))
        optimiser_step.step(lambda: self.style_loss(network, features, batch, clock))
