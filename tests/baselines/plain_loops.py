"""Small replica stacks of any network under any optimiser, and the plain loops that they must equal."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from farshift.baselines.encoding.encoding import EOS, PAD, Sizes
from farshift.baselines.layers.hidden import is_hidden, mark_hidden
from farshift.baselines.recipe import collect_defaults, find_plugin_files, read_literal, read_settings
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from torch import Tensor, nn

from .toys import recipe

ROWS = 4

TINY: dict[str, Any] = {
    "width": 8,
    "widths": [3, 4],
    "heads": 2,
    "layers": 1,
    "depth": 1,
    "meaning": 4,
    "syntax": 4,
    "cell": 2,
    "cells": 3,
    "blocks": 1,
    "iterations": 2,
    "feedforward": 8,
    "dropout": 0.0,
}
"""Sizes under which any network takes a step in a few milliseconds."""

IMAGES = ("cnn", "grey_mlp", "resnet")
NETWORKS = sorted(set(find_plugin_files("networks")) - {"pretrained"})
OPTIMISERS = sorted(find_plugin_files("optimisers"))


def settings(network: str, optimiser: str = "adamw", algorithm: str = "erm", **own: Any) -> dict[str, Any]:
    """Complete settings of a tiny network with full batches."""
    known = read_settings(find_plugin_files("networks")[network])
    tiny = {name: value for name, value in TINY.items() if isinstance(known.get(name), type(value))}
    own = {name: value for name, value in own.items() if name != "dropout" or name in known}
    chosen = tiny | {"optimiser": optimiser, "batch_size": 0, "lr": 0.01} | own
    built = recipe(network, 1, algorithm, **chosen)
    return collect_defaults(built) | chosen


def task_of(network: str) -> str:
    task: str = read_literal(find_plugin_files("networks")[network], "TASK")
    return task


def case(network: str, rows: int = ROWS) -> tuple[Data, Sizes]:
    """Random training rows that the network can read, with what it must know of them."""
    generator = torch.Generator().manual_seed(7)
    ones = torch.ones(1, rows, dtype=torch.float64)
    match task_of(network):
        case task if task == "regression" or network == "prompt_transformer":
            pairs = torch.randn(rows, 5, 4, generator=generator).double()
            pairs[..., 3] = 1.0
            pairs[:, -1, 2:] = 0.0  # the query, of which x alone is known
            prompts = (torch.zeros(rows, 0, dtype=torch.int64), pairs.flatten(1))
            is_number = task == "regression"
            target = torch.randn(rows, generator=generator).double()
            target = target if is_number else (target > 0).long()
            sizes = Sizes(1 if is_number else 2, numbers=20, shape=(5, 4))
            return Data(prompts, target[None], torch.ones(rows, dtype=torch.int64), ones), sizes
        case "classification" if network in IMAGES:
            images = torch.rand(rows, 64, generator=generator, dtype=torch.float64)
            inputs, sizes = (torch.zeros(rows, 0, dtype=torch.int64), images), Sizes(3, numbers=64, shape=(8, 8))
        case "classification" if network == "patch_network":
            patches = torch.randn(rows, 8, generator=generator).double()
            label = torch.randint(2, (1, rows), generator=generator)
            data = Data(
                (torch.zeros(rows, 0, dtype=torch.int64), patches), label, torch.ones(rows, dtype=torch.int64), ones
            )
            return data, Sizes(2, numbers=8, shape=(2, 4))
        case "classification" if network in ("gin", "gcn"):
            nodes = torch.randint(PAD + 1, PAD + 4, (rows, 4, 1), generator=generator)
            nodes[: rows // 2, 3] = PAD
            edges = torch.tensor([[0, 1], [1, 2], [0, 0]]).expand(rows, 3, 2).clone()
            inputs, sizes = (nodes, edges), Sizes(3, source=PAD + 4, numbers=2)
        case "classification" if network == "reward":
            replies = torch.randn(rows, 6, generator=generator).double()
            label = torch.randint(2, (1, rows), generator=generator)
            none = torch.zeros(rows, 0, dtype=torch.int64)
            return Data((none, replies), label, torch.ones(rows, dtype=torch.int64), ones), Sizes(2, numbers=6)
        case "sequence" if network == "node_pointer":
            source = torch.tensor([[4, 5, 6, 8, 5, 8, 4, 5], [6, 4, 8, 6, 8, 4, 6, PAD]]).repeat(rows // 2, 1)
            target = torch.tensor([[5, 4, 6, EOS], [4, 6, EOS, PAD]]).repeat(rows // 2, 1)
            sizes = Sizes(9, source=9, copies=(PAD, PAD, PAD, PAD, 4, 5, 6, 7, PAD))
            return Data((source, target), target[None], (target != PAD).sum(1), ones), sizes
        case "classification":
            categories = torch.randint(4, (rows, 2), generator=generator)
            numbers = torch.randn(rows, 2 if network in ("linear", "mlp") else 0, generator=generator).double()
            inputs, sizes = (categories, numbers), Sizes(3, (4, 4), numbers.shape[1])
        case task:
            source = torch.randint(4, 9, (rows, 3), generator=generator)
            target = torch.randint(4, 9, (rows, 3), generator=generator)
            source[: rows // 2, 2], target[: rows // 2, 2] = PAD, PAD
            if task == "sequence":
                target[: rows // 2, 1] = EOS
            lengths = (target != PAD).sum(1)
            return Data((source, target), target[None], lengths, ones), Sizes(9, source=9, aligned=task == "aligned")
    label = torch.randint(3, (rows,), generator=generator)
    return Data(inputs, label[None], torch.ones(rows, dtype=torch.int64), ones), sizes


def stack(
    network: str,
    each: Sequence[Mapping[str, Any]],
    data: Data,
    sizes: Sizes,
    steps: int,
    dtype: torch.dtype = torch.float64,
    algorithm: str = "erm",
    names: Sequence[str] = ("first", "second", "third"),
) -> ReplicaStack:
    task = task_of(network) if task_of(network) in ("classification", "regression") else "sequence"
    return ReplicaStack(network, algorithm, each, names[: len(each)], sizes, task, data, steps, dtype)


def as_float(data: Data, dtype: torch.dtype) -> Data:
    """The same rows with their numbers in another precision."""
    return replace(data, inputs=tuple(x.to(dtype) if x.is_floating_point() else x for x in data.inputs))


def plain_loss(network: Any, data: Data) -> Tensor:
    """The mean cross-entropy of a network of one replica on all rows, or of numbers the mean squared error."""
    logits = network(*(x[None] for x in data.inputs))
    if data.target.is_floating_point():
        return F.mse_loss(logits[..., 0], data.target)
    return F.cross_entropy(logits.flatten(0, -2), data.target.flatten(), ignore_index=PAD if logits.ndim == 4 else -100)


class PlainLion:
    """Algorithm 2 of the paper, for one replica."""

    def __init__(self, parameters: list[nn.Parameter], own: Mapping[str, Any]) -> None:
        self.parameters, self.own = parameters, own
        self.average = [torch.zeros_like(p) for p in parameters]

    @torch.no_grad()
    def step(self) -> None:
        lr, decay, beta1, beta2 = (self.own[name] for name in ("lr", "weight_decay", "beta1", "beta2"))
        for p, m in zip(self.parameters, self.average, strict=True):
            if p.grad is not None:
                p -= lr * (torch.sign(beta1 * m + (1 - beta1) * p.grad) + decay * p)
                m.copy_(beta2 * m + (1 - beta2) * p.grad)


class PlainMuon:
    """Muon on the hidden matrices of one replica, one by one, and torch's AdamW on the rest."""

    def __init__(self, parameters: list[nn.Parameter], own: Mapping[str, Any]) -> None:
        self.own = own
        self.matrices = [p for p in parameters if is_hidden(p)]
        rest = [p for p in parameters if not is_hidden(p)]
        self.average = [torch.zeros_like(p) for p in self.matrices]
        self.others = plain_adamw(rest, own) if rest else None

    @torch.no_grad()
    def step(self) -> None:
        lr, decay, momentum = (self.own[name] for name in ("lr", "weight_decay", "momentum"))
        for p, m in zip(self.matrices, self.average, strict=True):
            assert p.grad is not None
            m.copy_(momentum * m + (1 - momentum) * p.grad)
            x = ((1 - momentum) * p.grad + momentum * m)[0].flatten(1)
            rows, columns = x.shape
            turned = rows > columns
            x = x.T if turned else x
            x = x / x.norm()
            for _ in range(5):
                gram = x @ x.T
                x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
            x = x.T if turned else x
            p -= lr * decay * p + lr * 0.2 * max(rows, columns) ** 0.5 * x.view_as(p)
        if self.others is not None:
            self.others.step()


def plain_adam(parameters: list[nn.Parameter], own: Mapping[str, Any]) -> torch.optim.Optimizer:
    names = {"lr": own["lr"], "eps": own["eps"], "weight_decay": own["weight_decay"]}
    return torch.optim.Adam(parameters, betas=(own["beta1"], own["beta2"]), **names)


def plain_adamw(parameters: list[nn.Parameter], own: Mapping[str, Any]) -> torch.optim.Optimizer:
    betas = own["beta1"], own["beta2"]
    return torch.optim.AdamW(parameters, own["lr"], betas, own["eps"], own["weight_decay"])


def plain_sgd(parameters: list[nn.Parameter], own: Mapping[str, Any]) -> torch.optim.Optimizer:
    return torch.optim.SGD(
        parameters, own["lr"], own["momentum"], weight_decay=own["weight_decay"], nesterov=own["nesterov"]
    )


PLAIN: dict[str, Any] = {
    "adam": plain_adam,
    "adamw": plain_adamw,
    "sgd": plain_sgd,
    "lion": PlainLion,
    "muon": PlainMuon,
}
"""Each optimiser for one replica: torch's own where it has one."""


def plainly_trained(network: Any, data: Data, own: Mapping[str, Any], steps: int) -> list[Tensor]:
    """The sequential loop: one replica's network on full batches, and nothing of the trainer. Returns the largest
    gradient that each entry of each parameter ever had."""
    mark_hidden(network)
    for layer in network.modules():
        if hasattr(layer, "rng"):
            layer.rng = None
    parameters = list(network.parameters())
    optimiser = PLAIN[own["optimiser"]](parameters, own)
    steepest = [torch.zeros_like(p) for p in parameters]
    for _ in range(steps):
        for parameter in parameters:
            parameter.grad = None
        plain_loss(network, data).backward()  # type: ignore[no-untyped-call]
        for most, parameter in zip(steepest, parameters, strict=True):
            if parameter.grad is not None:
                torch.maximum(most, parameter.grad.abs(), out=most)
        optimiser.step()
    return steepest


def gap(ours: nn.Module, place: int, alone: nn.Module) -> float:
    """The largest difference between a replica's parameters and those of the same replica alone."""
    pairs = zip(ours.parameters(), alone.parameters(), strict=True)
    return max((a[place] - b[0]).abs().max().item() for a, b in pairs)


def gap_where_steep(ours: nn.Module, place: int, alone: nn.Module, steepest: Sequence[Tensor]) -> float:
    """The same over the entries whose gradients are more than rounding. An attention's key bias shifts all scores alike:
    its exact gradient is zero, and optimisers that divide by its size follow the rounding, to no effect."""
    result = 0.0
    for a, b, most in zip(ours.parameters(), alone.parameters(), steepest, strict=True):
        output = (most[0] == 0) | (most[0] > 1e-12)
        result = max(result, ((a[place] - b[0]).abs() * output).max().item())
    return result
