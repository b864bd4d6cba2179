"""The toy that our algorithms and released code are both given: eighteen rows, and weights by a formula.

Nothing is drawn, so that the code of others gets the same numbers without importing anything of ours but this.
"""

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

ENVIRONMENTS, ROWS, INPUTS, WIDTH, CLASSES = 3, 6, 4, 5, 3
"""ROWS: of each environment; they lie one environment after the other. WIDTH: of the one hidden layer (ReLU)."""
STEPS = 3
RATE, MOMENTUM = 0.1, 0.9
"""Of the gradient descent that moves the weights where nothing else is said: unlike Adam's, its steps show the scale of
the loss, and its momentum shows when it is forgotten."""


def wave(shape: tuple[int, ...], phase: float) -> Tensor:
    """Numbers from -1 to 1 that look random, in float64."""
    count = torch.Size(shape).numel()
    return torch.sin(12.9 * torch.arange(1, count + 1, dtype=torch.float64) + phase).reshape(shape)


def inputs(phase: float = 0.4) -> Tensor:
    """Rows (18, INPUTS), shifted a little from one environment to the next. phase: other rows for another one."""
    return 1.2 * wave((ENVIRONMENTS * ROWS, INPUTS), phase) + 0.3 * groups()[:, None].double()


def labels(classes: int = CLASSES) -> Tensor:
    """Labels (18,) of which every environment has all, and which environments do not share."""
    position = torch.arange(ENVIRONMENTS * ROWS)
    return (position * position + position // ROWS + (position % 5 == 0).long()) % classes


def groups() -> Tensor:
    """The environment of each row, (18,)."""
    return torch.arange(ENVIRONMENTS).repeat_interleave(ROWS)


@torch.no_grad()
def fill(parameters: Iterable[Tensor], first: int = 0) -> None:
    """Give parameters the weights of the toy, by their order; `first`: the number of the first of them. A parameter
    with a leading axis of 1 replica gets what it gets without."""
    for number, parameter in enumerate(parameters, first):
        parameter.copy_((0.7 * wave((parameter.numel(),), 1.0 + number)).view_as(parameter))


def flat(parameters: Iterable[Tensor]) -> list[float]:
    """All weights in one row."""
    return [value for parameter in parameters for value in parameter.detach().flatten().tolist()]


def loss_and_gradient(loss: Tensor, parameters: Sequence[nn.Parameter]) -> list[float]:
    """A loss, and then its gradient by all weights, 0 by those that it does not depend on."""
    gradients = torch.autograd.grad(loss.sum(), parameters, allow_unused=True)
    result = [torch.zeros_like(p) if g is None else g for g, p in zip(gradients, parameters, strict=True)]
    return [loss.item(), *flat(result)]
