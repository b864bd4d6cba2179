"""Where the objective of a linear model of numbers is least on the toy: it is a parabola, so one Newton step gets there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from farshift.baselines.encoding.encoding import Sizes
from torch import Tensor

from .. import toy
from .steps import batches, data, training


def inputs() -> Tensor:
    """The toy's inputs, raised to other powers: as they are, no linear model of them is the only one that fits best."""
    return toy.inputs() ** torch.arange(1, toy.INPUTS + 1)


def numbers() -> Tensor:
    """The number (18,) of each row, shifted from one environment to the next."""
    return inputs() @ torch.tensor([1.0, -0.5, 0.25, 0.0]).double() + toy.wave((18,), 2.2) + 0.8 * toy.groups().double()


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`coefficients`: of the inputs, and then the offset."""
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
