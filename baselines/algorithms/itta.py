"""Improved test-time adaptation: a learned consistency loss adapts elementwise feature maps at test time.

With features z, those z' of the same rows in another style (MixStyle), and A elementwise affine maps with ReLU,
training makes two steps on each batch (Chen et al.):

    network:  CE(z) + CE(z') + mean (A(z' - z))^2
    A:        alignment * mean (g~_con - g~_cls)^2, the normalised gradients of the two losses by the feature extractor

At test time a shallow stack of elementwise affine maps m with ReLU follows the features; a batch moves m by one step of
Adam down  test_weight * mean (A(m(z') - m(z)))^2,  and is then predicted by the head on m(z). In the paper styles are
mixed after the first or second block of a ResNet-18 and each of its four blocks is followed by a map; networks here
have no blocks in common, so styles are those of the embedded inputs, and there is one map, after the features; negative
ones pass it by. Known trap avoided: the released state is never reset between evaluations, here `reset` restores maps,
moments and draws.

Not compared with released code: the released code depends on the blocks of a ResNet-18, which networks here do not
have.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..replicas.rng import derive_stream, draw_beta, draw_permutations
from ..training.losses import average_over_batch, average_per_replica, compute_gradients, cross_entropy
from ..training.optimiser_step import exclude_parameters
from . import Batch, Batches, Build, MakeOptimiserStep, OptimiserSteps, StepState
from ._adaptive import OnlineAdam, TestTimeAdaptation

KIND = "domain"
CITATION = (
    "Chen, Zhang, Song, Shan and Liu, Improved test-time adaptation for domain generalization, CVPR 2023 "
    "(arXiv:2304.04494)"
)
TOUCHES = ("train", "test batches")
SETTINGS: dict[str, Any] = {
    "alignment": 0.1,
    "adaptive_lr": 1e-4,
    "test_weight": 1e-6,
    "consistency_depth": 10,
    "map_depth": 5,
    "style": 0.1,
}
"""alignment: the weight of the gradients' distance. adaptive_lr: of A's steps and of those while predicting, a tenth of
lr. test_weight: of the loss while predicting: Adam makes little of it, but where it comes near its epsilon.
consistency_depth and map_depth: layers of A and of m. style: a of the Beta(a, a) that styles are mixed by."""
SEARCH: dict[str, Any] = {"adaptive_lr": ["log10", -6, -3], "test_weight": ["choice", 1e-6, 0.1]}


class Elementwise(nn.Module):
    """`depth` layers x -> weight x + bias of each unit alone, of each replica, with ReLU between them: at first the
    identity above 0 (of a single layer everywhere)."""

    def __init__(self, replicas: int, depth: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(replicas, depth, width))
        self.bias = nn.Parameter(torch.zeros(replicas, depth, width))

    def forward(self, x: Tensor) -> Tensor:
        """(K, n, width) to the same."""
        for index, (weight, bias) in enumerate(zip(self.weight.unbind(1), self.bias.unbind(1), strict=True)):
            x = weight[:, None] * (torch.relu(x) if index else x) + bias[:, None]
        return x


class Algorithm(TestTimeAdaptation):
    additive = False
    batches_seen: Tensor
    """Batches predicted since the last reset, (K,)."""

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        if not _list_feature_parameters(network):
            raise ModelError(
                "itta aligns gradients of the feature extractor, and this network has none: use mlp or cnn"
            )
        replicas, like = len(next(network.parameters())), self.hyperparameters["lr"]
        self.consistency = Elementwise(replicas, self.hyperparameters["consistency_depth"], network.width).to(like)
        self.map = Elementwise(replicas, self.hyperparameters["map_depth"], network.width).to(like)
        self.optimiser = OnlineAdam(list(self.map.parameters()))
        self.register_buffer("batches_seen", torch.zeros(replicas, dtype=torch.int64, device=like.device))
        return network

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        consistency = optimiser_step(list(self.consistency.parameters()), "adaptive_lr")
        return {"main": optimiser_step(list(network.parameters()), "lr"), "consistency": consistency}

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        consistency, risk = self._terms(network, batch, clock.draw("style"))
        return risk + consistency

    def _terms(self, network: Any, batch: Batch, keys: Tensor) -> tuple[Tensor, Tensor]:
        """The consistency loss and the risk in both styles, (K,) each."""
        x = network.embed(*batch.inputs)
        z, other = network.encode(x), network.encode(mix_styles(x, keys, self.hyperparameters.exact("style")))
        risks = [
            average_over_batch(cross_entropy(network.head(features), batch.target), batch) for features in (z, other)
        ]
        return average_per_replica(self.consistency(other - z).square()), risks[0] + risks[1]

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        losses = super().update(network, batches, clock, optimiser_steps)
        features = _list_feature_parameters(network)
        parameters: list[Tensor] = list(self.consistency.parameters())
        batch, _ = next(iter(batches()))
        consistency, risk = self._terms(network, batch, clock.draw("style again"))
        risk_gradient = normalise_gradients(torch.autograd.grad(risk.sum(), features, retain_graph=True))
        consistency_gradient = normalise_gradients(compute_gradients(consistency, features, create_graph=True))
        distance = average_per_replica((consistency_gradient - risk_gradient).square())
        optimiser_steps["consistency"].follow(
            compute_gradients(self.hyperparameters["alignment"] * distance, parameters)
        )
        return losses

    def adapted(self, network: Any, *inputs: Tensor) -> Tensor:
        assert self.rng is not None
        x = network.embed(*inputs)
        keys = derive_stream(self.rng.keys, "test style", self.batches_seen)
        z, other = network.encode(x), network.encode(mix_styles(x, keys, self.hyperparameters.exact("style")))
        parameters: list[Tensor] = list(self.map.parameters())
        with torch.enable_grad():
            moved = self.consistency(self._mapped(other) - self._mapped(z))
            losses = self.hyperparameters["test_weight"] * average_per_replica(moved.square())
            grads = compute_gradients(losses, parameters)
        self.optimiser.step(parameters, grads, self.hyperparameters["adaptive_lr"])
        self.batches_seen += 1
        return network.head(self._mapped(z))

    def _mapped(self, z: Tensor) -> Tensor:
        """Features through the map, whose first ReLU a network's negative ones pass by: so it is the identity at
        first."""
        moved: Tensor = self.map(z)
        return moved + z.clamp(max=0) if self.hyperparameters["map_depth"] > 1 else moved

    @torch.no_grad()
    def reset(self, network: Any) -> None:
        self.map.weight.fill_(1.0)
        self.map.bias.zero_()
        self.optimiser.reset()
        self.batches_seen.zero_()


def _list_feature_parameters(network: Any) -> list[Tensor]:
    """The parameters of a network that are not its head's."""
    return [*exclude_parameters(network, network.head.parameters())]


def normalise_gradients(grads: tuple[Tensor, ...]) -> Tensor:
    """All entries of a replica's gradient less their mean, over their standard deviation: (K, all). Both are numbers,
    not ways to the loss."""
    flat = torch.cat([gradient.flatten(1) for gradient in grads], dim=1)
    own = flat.detach()
    return (flat - own.mean(1, keepdim=True)) / own.std(1, keepdim=True).clamp(min=torch.finfo(own.dtype).tiny)


def mix_styles(x: Tensor, keys: Tensor, concentration: Sequence[float]) -> Tensor:
    """MixStyle (Zhou et al., ICLR 2021, arXiv:2104.02008): each row with a mean and deviation between
    its own and those of another row of the batch, the share drawn from Beta(a, a), a of each replica.

    x: (K, n, channels, height, width), whose style is that of each channel, or (K, n, width), one for all; keys:
    (K,)."""
    axes = tuple(range(3, x.ndim)) or (2,)
    # A style is a number of the batch, not a way to the loss.
    own = x.detach()
    mean, deviation = own.mean(axes, keepdim=True), (own.var(axes, correction=0, keepdim=True) + 1e-6).sqrt()
    replicas, rows = x.shape[:2]
    other = draw_permutations(derive_stream(keys, "other"), rows)
    every = torch.arange(replicas, device=x.device)[:, None]
    drawn = [
        draw_beta(key[None], (rows,), a) for key, a in zip(derive_stream(keys, "share"), concentration, strict=True)
    ]
    share = torch.cat(drawn).to(x.dtype).view(replicas, rows, *[1] * (x.ndim - 2))
    mixed_mean = share * mean + (1 - share) * mean[every, other]
    mixed_deviation = share * deviation + (1 - share) * deviation[every, other]
    return (x - mean) / deviation * mixed_deviation + mixed_mean
