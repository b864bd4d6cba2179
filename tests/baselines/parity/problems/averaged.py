"""Three steps of an algorithm that reads validation rows and answers with a mean of weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import toy
from .steps import data, training


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps`, and the `means` (3, all weights) after each step."""
    built = training(algorithm, settings, replace(data(), held_out={"id_val": data(toy.inputs(1.3))}))
    losses, parameters, means = [], [], []
    for _ in range(toy.STEPS):
        built.step()
        losses.append(built.losses.item())
        parameters.append(toy.flat(built.stack.network.parameters()))
        means.append(toy.flat(built.stack.algorithm.mean.values))  # type: ignore[operator, union-attr]
    return {"losses": losses, "parameters": parameters, "means": means}
