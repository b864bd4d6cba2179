"""MIRO: mutual-information regularisation with the features of the initial network.

    CE + penalty x sum over layers of 1/2 mean [ (f - f_0)^2 / v + log v ],    v = softplus(b) + 1e-5

f are the states after each block of the network, f_0 those of its pretrained weights on the same rows; v is learned for
each channel of each layer, at ten times the rate, from 0.1 on: Cha, Lee, Park and Chun, ECCV 2022, where the bound's
mean is the state itself. Blocks are the elements of the network's outermost lists of layers; the part before the first,
which the released code adds, is not compared. A network without a list of layers is compared in its features. For a
network trained from scratch the first part of training is plain ERM and replaces the pretraining.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..networks._body import Body
from ..replicas.rng import Rng
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, MakeOptimiserStep, OptimiserSteps, StepState
from ._plain import use_evaluation_mode

KIND = "domain"
CITATION = (
    "Cha, Lee, Park and Chun, Domain generalization by mutual-information regularization with pre-trained models, "
    "ECCV 2022 (arXiv:2203.10789)"
)
SETTINGS: dict[str, Any] = {"penalty": 0.1, "pretrain_percent": 50}
"""penalty: the released code's default (it searches .01, .1 and 1). pretrain_percent: of the steps, for a network
trained from scratch."""
SEARCH: dict[str, Any] = {"penalty": ["choice", 0.01, 0.1, 1.0]}

LEAST, FASTER = 1e-5, 10.0
BEGIN = math.log(math.expm1(0.1 - LEAST))


def list_blocks(network: nn.Module) -> list[nn.Module]:
    """The elements of a network's outermost lists of two modules or more."""
    network_blocks: list[nn.Module] = []
    for child in network.children():
        if isinstance(child, nn.ModuleList | nn.Sequential) and len(child) > 1:
            network_blocks += [layer for layer in child if next(layer.parameters(), None) is not None]
        else:
            network_blocks += list_blocks(child)
    return network_blocks


def compute_block_states(network: Any, inputs: tuple[Tensor, ...]) -> tuple[Tensor, list[Tensor]]:
    """The features of rows, and the states after each block that was passed, (K, n, ..) each."""
    modules = list_blocks(network)
    passed: list[list[Tensor]] = [[] for _ in modules]

    def record_output(index: int) -> Callable[..., None]:
        return lambda _module, _given, out: passed[index].append(out[0] if isinstance(out, tuple) else out)

    hooks = [block.register_forward_hook(record_output(index)) for index, block in enumerate(modules)]
    try:
        features = network.encode(network.embed(*inputs))
    finally:
        for hook in hooks:
            hook.remove()
    # A pretrained body is called for one replica after the other.
    alone = isinstance(getattr(network, "body", None), Body)
    each = [torch.stack(outs) if alone else outs[-1] for outs in passed if outs]
    return features, each or [features]


def find_channel_axis(state: Tensor) -> int:
    """The axis of a state's channels: the third for images (K, n, channels, height, width), else the last."""
    return 2 if state.ndim == 5 else state.ndim - 1


def compute_variational_bound(state: Tensor, before: Tensor, spread: Tensor) -> Tensor:
    """1/2 mean [(f - f_0)^2 / v + log v] of a layer's states (K, n, ..), (K,). spread: b, (K, channels)."""
    axis = find_channel_axis(state)
    shape = [len(state), *(state.shape[dimension] if dimension == axis else 1 for dimension in range(1, state.ndim))]
    v = (F.softplus(spread) + LEAST).view(shape)
    return ((state - before).square() / v + v.log()).flatten(1).mean(1) / 2


class Algorithm(BaseAlgorithm):
    def set_up(self) -> None:
        pretrained = bool(self.hyperparameters.common.get("weights"))
        self.begin = 0 if pretrained else self.about.steps * self.hyperparameters["pretrain_percent"] // 100
        self.rng: Rng | None = None

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        self.oracle = copy.deepcopy(network).requires_grad_(False).to(self.hyperparameters["lr"])
        first = tuple(x[:1] for x in self.about.data.inputs)
        with torch.no_grad(), use_evaluation_mode(self.oracle, self.rng):
            block_states = compute_block_states(
                self.oracle, tuple(x.expand(self.about.replicas, *x.shape) for x in first)
            )[1]
        rates = self.hyperparameters["lr"]
        self.spreads = nn.ParameterList(
            rates.new_full((len(x), x.shape[find_channel_axis(x)]), BEGIN) for x in block_states
        )
        return network

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        for spread in self.spreads:
            spread.rate_share = torch.full((len(spread),), FASTER, device=spread.device)
        return {"main": optimiser_step([*network.parameters(), *self.spreads], "lr")}

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        if clock.total < self.begin:
            return average_over_batch(cross_entropy(network(*batch.inputs), batch.target), batch)
        features, after = compute_block_states(network, batch.inputs)
        with torch.no_grad(), use_evaluation_mode(self.oracle, self.rng):
            before = compute_block_states(self.oracle, batch.inputs)[1]
        bounds = [compute_variational_bound(*three) for three in zip(after, before, self.spreads, strict=True)]
        risk = average_over_batch(cross_entropy(network.head(features), batch.target), batch)
        return risk + self.hyperparameters["penalty"] * torch.stack(bounds).sum(0)

    @torch.no_grad()
    def after(self, network: Any, clock: StepState) -> None:
        if clock.total + 1 == self.begin:
            for oracle_value, own in zip(self.oracle.state_dict().values(), network.state_dict().values(), strict=True):
                oracle_value.copy_(own)
