"""Three steps of an algorithm that reads other views of rows: formulas stand in for its augmentation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
from farshift.baselines.encoding.encoding import Sizes
from farshift.core.plugins import load_module
from torch import Tensor

from .. import toy
from .adapted import shifted
from .steps import data, steps, training


def view(name: str, x: Tensor) -> Tensor:
    """Another view of rows (.., INPUTS): element by element, so that a row's place does not matter."""
    return x - 0.4 * torch.cos(2 * x) if name.endswith("second") else x + 0.3 * torch.sin(3 * x)


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps`; rows are pictures of two pixels by two."""
    nothing = torch.zeros(len(shifted()), 0, dtype=torch.int64)
    given = replace(data(), unlabelled=(nothing, shifted()))
    sizes = Sizes(toy.CLASSES, numbers=toy.INPUTS, shape=(2, 2))
    file = load_module("baselines/algorithms", algorithm, "algorithm")
    with patch.object(file, "augment_flat_rows", lambda one, name, numbers, *_: view(name, numbers)):
        return steps(training(algorithm, settings, given, sizes=sizes))
