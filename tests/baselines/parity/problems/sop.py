"""Three steps of sparse over-parameterisation, from noise that is large enough to be seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from .. import toy
from .steps import steps, training


def noise() -> tuple[Tensor, Tensor]:
    """u (18, 1) and v (18, CLASSES) at first."""
    rows = toy.ENVIRONMENTS * toy.ROWS
    return 0.5 * toy.wave((rows, 1), 0.7), 0.5 * toy.wave((rows, toy.CLASSES), 1.7)


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps.py`, and `v` after each step."""
    built = training(name, settings)
    algorithm = built.stack.algorithm
    for buffer, value in zip((algorithm.u, algorithm.v), noise(), strict=True):
        buffer.copy_(value[None])  # type: ignore[operator]
    result: dict[str, Any] = {"losses": [], "parameters": [], "v": []}
    for _ in range(toy.STEPS):
        for key, value in steps(built, 1).items():
            result[key] += value
        result["v"].append(toy.flat([algorithm.v]))  # type: ignore[list-item]
    return result
