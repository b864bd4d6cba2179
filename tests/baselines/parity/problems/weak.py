"""The student's loss with its gradient, at the toy's weights, of two classes, with a teacher's answers given: after the
weight of its own confidence has risen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from farshift.baselines.encoding.encoding import Sizes
from farshift.baselines.training.algorithm import StepState
from torch import Tensor

from .. import toy
from .steps import data, in_order, training

CLASSES = 2


def taught() -> Tensor:
    """The teacher's probabilities of the toy's rows, (18, CLASSES)."""
    return toy.wave((toy.ENVIRONMENTS * toy.ROWS, CLASSES), 0.3).softmax(-1)


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`loss`: its value, and then its gradient."""
    given = data(y=toy.labels(CLASSES))
    sizes = Sizes(CLASSES, numbers=toy.INPUTS)
    built = training(name, dict(settings) | {"batch_size": len(given)}, given, 10, sizes=sizes)
    stack = built.stack
    stack.algorithm.weak.copy_(taught()[None])  # type: ignore[operator]
    batch = replace(in_order(given, built), environments=0)
    loss = stack.algorithm.loss(stack.network, batch, StepState(5, 10, 1, 5, stack.keys))
    return {"loss": toy.loss_and_gradient(loss, [*stack.network.parameters()])}
