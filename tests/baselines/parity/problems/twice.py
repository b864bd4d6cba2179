"""Three steps of a second stage of training, from the toy's weights, after three of a first one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import toy
from .steps import steps, training


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps.py`, and what each row then weighs."""
    built = training(name, settings, count=2 * toy.STEPS)
    for _ in range(toy.STEPS):
        built.step()
    toy.fill(built.stack.network.parameters())
    return steps(built) | {"weights": built.data.weight[0].double().tolist()}
