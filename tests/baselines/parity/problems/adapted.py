"""Three steps of an algorithm that also reads inputs of shifted rows: the toy's, by another phase."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from .. import toy
from .steps import data, steps, training


def shifted() -> Tensor:
    """Inputs of as many shifted rows, (18, INPUTS)."""
    return toy.inputs(2.1) + 0.5


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps`."""
    nothing = torch.zeros(len(shifted()), 0, dtype=torch.int64)
    return steps(training(algorithm, settings, replace(data(), unlabelled=(nothing, shifted()))))
