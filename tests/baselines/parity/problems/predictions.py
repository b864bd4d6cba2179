"""What is answered to other rows or pictures, by algorithms that adapt, fit a head again or read changed rows."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.training.replica_stack import ReplicaStack
from farshift.baselines.training.sampler import Data
from farshift.core.plugins import load_module
from torch import Tensor

from .. import pictures, toy
from .steps import batches, data, shifted_inputs, steps, training

BATCHES = (2.0, 3.1, 4.7)
"""Phases of the batches of rows that are asked."""


def asked() -> list[Tensor]:
    """The batches, (18, INPUTS) each."""
    return [toy.inputs(phase) for phase in BATCHES]


def shares(scores: Tensor) -> list[list[float]]:
    """Scores of rows (.., n, classes) as their shares of 1."""
    result: list[list[float]] = (scores / scores.sum(-1, keepdim=True)).detach().reshape(-1, scores.shape[-1]).tolist()
    return result


def run_answers(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What an algorithm that trains nothing more answers to three batches of other rows, one after the other, from the
    toy's weights, after it has seen the toy's rows as those that it was trained on. `first`, `second` and `third`:
    the probabilities of the rows of each batch."""
    built = training(name, settings)
    stack = built.stack
    stack.network.eval()
    stack.rng.silent = True
    stack.algorithm.finish(stack.network, built.data, stack.answer)
    result = {}
    for position, x in zip(("first", "second", "third"), asked(), strict=True):
        nothing = torch.zeros(1, len(x), 0, dtype=torch.int64)
        with torch.no_grad():
            result[position] = shares(stack.algorithm.logits(stack.network, nothing, x[None]).softmax(-1))
    return result


def run_drm(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps, and what heads that vote answer before them. As `steps.py` and `run_steps`."""
    return steps(training(name, settings)) | run_answers(name, settings)


def run_adapting(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three batches of pictures, asked one after the other of a network that adapts: what is answered, and all weights
    after each. The setting `sharpness` is the problem's own: see `pictures.fill`.
    `answers` (3, rows x classes) and `parameters` (3, all weights)."""
    stack = make_adapting(algorithm, dict(settings))
    return pictures.recorded(stack, stack.network, ask_pictures)


def ask_pictures(stack: ReplicaStack, batch: Tensor) -> Tensor:
    """The logits of pictures, (n, classes)."""
    flat = batch.flatten(1)
    return stack.answer(torch.zeros(len(flat), 0, dtype=torch.int64), flat, rows=len(flat))[0]


def list_pictures() -> Data:
    """The pictures as training rows, of one environment, with the toy's labels."""
    shown = torch.cat(pictures.batches()).flatten(1)
    ones = torch.ones(len(shown))
    inputs = torch.zeros(len(shown), 0, dtype=torch.int64), shown
    return Data(inputs, toy.labels()[None], ones.long(), ones[None].double())


def make_adapting(algorithm: str, settings: dict[str, Any]) -> ReplicaStack:
    """A replica whose training has ended with the toy's weights."""
    sharpness = settings.pop("sharpness", 1.0)
    own = {"widths": pictures.WIDTHS} | settings
    result = training(algorithm, own, list_pictures(), network="resnet", sizes=pictures.SIZES)
    pictures.fill(result.stack.network, sharpness)
    result._end(result.stack, result.data)
    return result.stack


CLASSES = 2


def held() -> tuple[Tensor, Tensor, Tensor]:
    """Inputs, labels and environments of 54 validation rows."""
    x = torch.cat([toy.inputs(phase) for phase in (1.3, 2.9, 5.1)])
    position = torch.arange(len(x))
    return x, (x.sum(1) + torch.sin(3.0 * position) > 0).long(), (position % 7 < 3).long()


def list_refitted() -> Tensor:
    return toy.inputs(3.7)


def run_refitted(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a head that was fitted again, to validation rows of two classes, answers to other rows, at the toy's
    weights. `first`: the probability of class 1 of the rows that are asked."""
    x, y, group = held()
    given = replace(data(y=toy.labels(CLASSES)), held_out={"id_val": replace(data(x, y), group=group)})
    built = training(name, settings, given, sizes=Sizes(CLASSES, numbers=toy.INPUTS))
    stack = built.stack
    stack.ready()
    stack.network.eval()
    stack.algorithm.finish(stack.network, given, stack.answer)
    nothing = torch.zeros(len(list_refitted()), 0, dtype=torch.int64)
    return {"first": stack.answer(nothing, list_refitted())[0].softmax(-1)[:, 1].tolist()}


def run_shot(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps on shifted rows, from the toy's weights: the loss of each, and all weights after it. `losses` (3)
    and `parameters` (3, all weights)."""
    nothing = torch.zeros(toy.ENVIRONMENTS * toy.ROWS, 0, dtype=torch.int64)
    given = replace(data(), unlabelled=(nothing, toy.inputs(1.7)))
    built = training(algorithm, {"source_percent": 25, **settings}, given, toy.STEPS + 1)
    built.step()
    toy.fill(built.stack.network.parameters())
    return steps(built)


def view(name: str, x: Tensor) -> Tensor:
    """Another view of rows (.., INPUTS): element by element, so that a row's place does not matter."""
    return x - 0.4 * torch.cos(2 * x) if name.endswith("second") else x + 0.3 * torch.sin(3 * x)


def run_viewed(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Three steps of an algorithm that reads other views of rows: formulas stand in for its augmentation. As `run_steps`;
    rows are pictures of two pixels by two."""
    nothing = torch.zeros(len(shifted_inputs()), 0, dtype=torch.int64)
    given = replace(data(), unlabelled=(nothing, shifted_inputs()))
    sizes = Sizes(toy.CLASSES, numbers=toy.INPUTS, shape=(2, 2))
    file = load_module("baselines/algorithms", algorithm, "algorithm")
    with patch.object(file, "augment_flat_rows", lambda one, name, numbers, *_: view(name, numbers)):
        return steps(training(algorithm, settings, given, sizes=sizes))


def inputs() -> Tensor:
    """The toy's inputs, raised to other powers: as they are, no linear model of them is the only one that fits best."""
    return toy.inputs() ** torch.arange(1, toy.INPUTS + 1)


def numbers() -> Tensor:
    """The number (18,) of each row, shifted from one environment to the next."""
    return inputs() @ torch.tensor([1.0, -0.5, 0.25, 0.0]).double() + toy.wave((18,), 2.2) + 0.8 * toy.groups().double()


def run_least(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Where the objective of a linear model of numbers is least on the toy: it is a parabola, so one Newton step gets
    there. `coefficients`: of the inputs, and then the offset."""
    sizes = Sizes(1, numbers=toy.INPUTS)
    built = training(name, settings, data(inputs(), numbers()), network="linear", sizes=sizes, task="regression")
    stack, batch = built.stack, next(batches(built))
    parameters = list(stack.network.parameters())

    def slope(at: Tensor) -> Tensor:
        torch.nn.utils.vector_to_parameters(at, parameters)
        loss = stack.algorithm.loss(stack.network, batch, None)  # type: ignore[arg-type]
        return torch.cat([part.flatten() for part in torch.autograd.grad(loss.sum(), parameters)])

    nowhere = torch.zeros(toy.INPUTS + 1, dtype=torch.float64)
    offset = slope(nowhere)
    curvature = torch.stack([slope(unit) - offset for unit in torch.eye(len(nowhere), dtype=torch.float64)])
    return {"coefficients": torch.linalg.solve(curvature, -offset).tolist()}
