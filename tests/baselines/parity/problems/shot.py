"""Three steps on shifted rows, from the toy's weights: the loss of each, and all weights after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from .. import toy
from .steps import data, steps, training


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """`losses` (3) and `parameters` (3, all weights)."""
    nothing = torch.zeros(toy.ENVIRONMENTS * toy.ROWS, 0, dtype=torch.int64)
    given = replace(data(), unlabelled=(nothing, toy.inputs(1.7)))
    built = training(algorithm, {"source_percent": 25, **settings}, given, toy.STEPS + 1)
    built.step()
    toy.fill(built.stack.network.parameters())
    return steps(built)
