"""SelfReg: self-supervised contrastive regularisation that pulls together rows of a class, and mixtures of them, in
logits and features.

    CE + min(1, CE) x [ l (a_1 + f_1) + (1 - l) (a_2 + f_2) ],    l ~ Beta(1/2, 1/2)
    a_1 = |o - o'|^2    f_1 = .3 |z - g(z')|^2    a_2, f_2: the same with l o' + (1 - l) o'', l g(z') + (1 - l) g(z'')

means over rows and coordinates; o are logits, z features, ' and '' two random orders of the rows within their classes,
g a projection of two hidden layers, and the factor before the bracket passes no gradient on. Kim, Yoo, Park, Kim and
Lee, ICCV 2021, in DomainBed's form, which is the authors' own. That code makes the projection after its optimiser,
which therefore never trains it: with `train_projection` false it is not trained here either.
The averaging of weights that the paper adds is the algorithm `swa`.
"""

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from ..layers.linear import Linear
from ..layers.norm import BatchNorm
from ..replicas.rng import draw_beta, draw_permutations
from ..training.losses import average_over_batch, cross_entropy
from ..training.optimiser_step import exclude_parameters
from . import BaseAlgorithm, Batch, Build, MakeOptimiserStep, OptimiserSteps, StepState

KIND = "domain"
CITATION = (
    "Kim, Yoo, Park, Kim and Lee, SelfReg: self-supervised contrastive regularization for domain generalization, "
    "ICCV 2021 (arXiv:2104.09841)"
)
SETTINGS: dict[str, Any] = {"feature_weight": 0.3, "train_projection": True}
"""feature_weight: of the distances of features (the released code's). train_projection: whether g is trained."""


class Projection(nn.Module):
    """g: (K, n, width) to (K, n, width), batch normalisation after each layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        hidden = width if width == 2048 else 2 * width
        widths = [width, hidden, hidden, width]
        self.layers = nn.ModuleList(Linear(a, b) for a, b in pairwise(widths))
        self.norms = nn.ModuleList(BatchNorm(b) for b in widths[1:])

    def forward(self, x: Tensor) -> Tensor:
        for index, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            x = norm(layer(x))
            x = torch.relu(x) if index < len(self.layers) - 1 else x
        return x


def draw_partners(keys: Tensor, target: Tensor) -> Tensor:
    """Each row's successor in a random order of the rows of its class, (K, n), of labels (K, n)."""
    rows = target.shape[1]
    in_order = (target * rows + torch.arange(rows, device=target.device)).argsort(dim=1)
    at_random = (target * rows + draw_permutations(keys, rows)).argsort(dim=1)
    return torch.empty_like(in_order).scatter_(1, in_order, at_random)


def compute_distance(own: Tensor, others: Tensor) -> Tensor:
    """The mean over coordinates of the squared difference of each row, (K, n)."""
    return (own - others).square().mean(-1)


def compute_penalty(
    logits: Tensor, features: Tensor, projected: Tensor, first: Tensor, second: Tensor, share: Tensor, weight: Tensor
) -> Tensor:
    """What is added to each row's error before it is scaled, (K, n). first, second: partners (K, n). share: l, (K, 1).
    weight: of features, (K, 1)."""
    replicas, wide = torch.arange(len(first), device=first.device)[:, None], share[..., None]

    def towards(own: Tensor, others: Tensor) -> Tensor:
        first_partner, second_partner = others[replicas, first], others[replicas, second]
        return share * compute_distance(own, first_partner) + (1 - share) * compute_distance(
            own, wide * first_partner + (1 - wide) * second_partner
        )

    return towards(logits, logits) + weight * towards(features, projected)


class Algorithm(BaseAlgorithm):
    def assemble(self, build: Build) -> Any:
        network = build("weights")
        network.projection = self.about.each(lambda: Projection(network.width), "projection")
        return network

    def optimiser_steps(self, network: Any, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        left = () if self.hyperparameters["train_projection"] else network.projection.parameters()
        return {"main": optimiser_step(exclude_parameters(network, left), "lr")}

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        features = network.encode(network.embed(*batch.inputs))
        logits = network.head(features)
        risk = average_over_batch(cross_entropy(logits, batch.target), batch)
        first, second = (draw_partners(clock.draw(name), batch.target) for name in ("first", "second"))
        share = draw_beta(clock.draw("share"), (1,), 0.5).to(features)
        weight = self.hyperparameters["feature_weight"][:, None]
        more = compute_penalty(logits, features, network.projection(features), first, second, share, weight)
        return risk + risk.detach().clamp(max=1) * average_over_batch(more, batch)
