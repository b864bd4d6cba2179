"""Weights along the toy's training by plain risk, for drivers of code that puts them together. No repository's own."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from . import toy
from .plain import descent, network


def along() -> list[dict[str, Tensor]]:
    """The state after each step."""
    made = network()
    optimiser = descent(made.parameters())
    found = []
    for _ in range(toy.STEPS):
        optimiser.zero_grad()
        F.cross_entropy(made(toy.inputs()), toy.labels()).backward()
        optimiser.step()
        found.append({name: value.clone() for name, value in made.state_dict().items()})
    return found
