"""Weights along the toy's training by plain risk, for drivers of code that puts them together. No repository's own."""

import torch.nn.functional as F
from torch import Tensor

from . import toy
from .plain import descent, network


def along() -> list[dict[str, Tensor]]:
    """The state after each step."""
    built = network()
    optimiser = descent(built.parameters())
    result = []
    for _ in range(toy.STEPS):
        optimiser.zero_grad()
        F.cross_entropy(built(toy.inputs()), toy.labels()).backward()
        optimiser.step()
        result.append({name: value.clone() for name, value in built.state_dict().items()})
    return result
