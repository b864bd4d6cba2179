"""PEGO: frozen weights with groups of low-rank updates that are kept orthogonal to them and to each other.

Every linear layer W but the head becomes W + sum over i of B_i A_i, of rank r each. The objective is

    CE + lambda sum over layers of [ sum_i |W (B_i A_i)^T|_1 + sum_{i<j} |(B_i A_i) (B_j A_j)^T|_1 ]

over A, B and the head alone. Hu et al., ECCV 2024, where W is the pretrained CLIP's, and the layers are its queries and
values, as here for the network `pretrained` (`--fine-tune`). Other networks are trained from scratch: the first part of
training is plain ERM and replaces the pretraining, then all but the updates and the head is frozen. A trap of the
released code that is avoided: its configuration's default is lambda = 0.1, not the paper's 0.001.
"""

from collections.abc import Callable
from functools import partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from ...core.errors import ModelError
from ..layers.linear import Linear
from ..layers.lora import Lora
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, Data, MakeOptimiserStep, OptimiserSteps, StepState

KIND = "domain"
CITATION = (
    "Hu et al., Learn to preserve and diversify: parameter-efficient group with orthogonal regularization for domain "
    "generalization, ECCV 2024 (arXiv:2407.15085)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"orthogonality": 1e-3, "groups": 4, "rank": 4, "pretrain_percent": 50, "lr": 5e-4}
"""orthogonality: lambda. groups: how many B_i A_i a layer has. pretrain_percent: of all steps, in which the whole
network is trained as by ERM; with 0 its initial weights are frozen, with 100 nothing is. A pretrained network is frozen
from the first step."""
SEARCH: dict[str, Any] = {"orthogonality": ["log10", -4, -1], "groups": ["choice", 2, 4, 6]}


class AdaptedLinear(Linear):
    """A linear map, with its weights, and groups of low-rank updates to it, 0 at first."""

    def __init__(self, base: Linear, down: Linear, up: Linear, groups: int) -> None:
        """down: to the ranks of all groups. up: from there."""
        nn.Module.__init__(self)  # the weights exist already, for all replicas
        self.weight, self.bias = base.weight, base.bias
        self.down, self.up, self.groups = down, up, groups

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.up(self.down(x))


def compute_overlap(weight: Tensor, down: Tensor, up: Tensor, groups: int) -> Tensor:
    """The sum of the absolute entries of all products that orthogonality would make 0, (K,). weight: (K, outputs,
    inputs); down: (K, ranks, inputs) and up: (K, outputs, ranks), of all groups."""
    ups, downs = up.chunk(groups, dim=2), down.chunk(groups, dim=1)
    products = [weight @ down.transpose(1, 2) @ up.transpose(1, 2) for down, up in zip(downs, ups, strict=True)]
    products += [
        ups[i] @ (downs[i] @ downs[j].transpose(1, 2)) @ ups[j].transpose(1, 2)
        for i, j in combinations(range(groups), 2)
    ]
    return torch.stack([product.abs().flatten(1).sum(1) for product in products]).sum(0)


class Algorithm(BaseAlgorithm):
    additive = True
    frozen: Tensor

    def set_up(self) -> None:
        self.register_buffer("frozen", torch.full((self.about.replicas,), self._pretraining(self.about.steps) == 0))

    def _pretraining(self, steps: int) -> int:
        if self.hyperparameters.common.get("weights"):
            return 0
        return steps * self.hyperparameters["pretrain_percent"] // 100

    def stages(self, steps: int) -> tuple[int, ...]:
        before = self._pretraining(steps)
        return (before, steps - before) if 0 < before < steps else (steps,)

    def assemble(self, build: Build) -> Any:
        network = build("weights")
        if self.hyperparameters.common.get("weights"):
            self._adapt_pretrained(network)
            return network
        layers = {
            name: layer
            for name, layer in network.named_modules()
            if isinstance(layer, Linear) and layer is not network.head
        }
        if not layers:
            raise ModelError("pego updates linear layers below the head, and the network has none: use mlp or cnn")
        for name, layer in layers.items():
            parent, _, own = name.rpartition(".")
            setattr(network.get_submodule(parent), own, self._adapted(layer, name))
        return network

    def _adapt_pretrained(self, network: Any) -> None:
        """Give the queries and values of a pretrained network their updates, and freeze all else but the head."""
        if self.hyperparameters["lora_rank"] or network.body.frozen:
            raise ModelError("pego adds its own low-rank updates: leave lora_rank at 0 and freeze at none")
        layers = network.body.adaptable
        if not layers:
            raise ModelError(f"weights {network.body.name} have no attention for pego to update: use a Transformer")
        ranks = self.hyperparameters["groups"] * self.hyperparameters["rank"]
        network.body.model.requires_grad_(False)
        for name, layer in layers.items():
            replicas, outputs, inputs = layer.weight.shape
            drawn = self.about.each(partial(Linear, inputs, ranks, bias=False), f"{name}/down")
            update = Lora(layer, ranks, float(ranks))
            update.down, update.scale = drawn.weight, torch.ones(replicas)
            update.up = nn.Parameter(torch.zeros(replicas, outputs, ranks))
            parent, _, own = name.rpartition(".")
            setattr(network.body.model.get_submodule(parent), own, update)

    def _adapted(self, layer: Linear, name: str) -> AdaptedLinear:
        _, outputs, inputs = layer.weight.shape
        ranks = self.hyperparameters["groups"] * self.hyperparameters["rank"]
        down = self.about.each(lambda: Linear(inputs, ranks, bias=False), f"{name}/down")
        up = self.about.each(lambda: Linear(ranks, outputs, bias=False), f"{name}/up")
        nn.init.zeros_(up.weight)
        return AdaptedLinear(layer, down, up, self.hyperparameters["groups"])

    def optimiser_steps(self, network: Any, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        updates = {id(p) for _, down, up in _list_adapted_layers(network) for p in (down, up)}
        head = {id(parameter) for parameter in network.head.parameters()}
        after = bool(self.frozen.all())
        for parameter in network.parameters():
            update = id(parameter) in updates
            parameter.requires_grad_((update or id(parameter) in head) if after else not update)
        return {
            "main": optimiser_step([parameter for parameter in network.parameters() if parameter.requires_grad], "lr")
        }

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        self.frozen = torch.ones_like(self.frozen)
        return data, False

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        risk = average_over_batch(cross_entropy(network(*batch.inputs), batch.target), batch)
        if not bool(self.frozen.all()):
            return risk
        groups = self.hyperparameters["groups"]
        overlaps = torch.stack([compute_overlap(*each, groups) for each in _list_adapted_layers(network)]).sum(0)
        return risk + self.hyperparameters["orthogonality"] * overlaps


def _list_adapted_layers(network: nn.Module) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The weights of each layer that has updates, and the updates: down and up."""
    layers: list[tuple[Tensor, Tensor, Tensor]] = []
    for layer in network.modules():
        if isinstance(layer, AdaptedLinear):
            layers.append((layer.weight, layer.down.weight, layer.up.weight))
        elif isinstance(layer, Lora):
            layers.append((layer.weight, layer.down, layer.up))
    return layers
