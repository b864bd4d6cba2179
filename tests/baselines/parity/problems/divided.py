"""Three steps of DivideMix, with made-up posteriors of clean labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest.mock import patch

from farshift.baselines.algorithms.dividemix import Algorithm
from torch import Tensor

from .. import toy
from .steps import steps, training


def clean() -> Tensor:
    """How likely each row's label is right, by the losses of the first and of the second network, (2, 18)."""
    return 0.5 + 0.49 * toy.wave((2, toy.ENVIRONMENTS * toy.ROWS), 0.6)


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The weights of both networks after each step."""
    built = training(name, settings)
    built.stack.algorithm.clean.copy_(clean()[None])  # type: ignore[operator]
    with patch.object(Algorithm, "divide"):
        return {"parameters": steps(built)["parameters"]}
