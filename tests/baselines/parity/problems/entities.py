"""Three steps of training on two classes of the toy's rows, each of which names two entities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from farshift.baselines.encoding.encoding import Sizes
from torch import Tensor

from .. import toy
from .steps import data, steps, training

CLASSES, VALUES, WIDTH = 2, (3, 2), 4
"""VALUES: how many entities each of the two fields has. WIDTH: of their vectors."""


def entities() -> Tensor:
    """The entities of each row, (18, 2)."""
    position = torch.arange(toy.ENVIRONMENTS * toy.ROWS)
    return torch.stack([position % 7 % VALUES[0], position % 5 % VALUES[1]], dim=1)


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps.py`."""
    given = data(y=toy.labels(CLASSES))
    sizes = Sizes(CLASSES, numbers=toy.INPUTS, categories=VALUES)
    given = replace(given, inputs=(entities(), given.inputs[1]))
    return steps(training(name, {"entity_width": WIDTH} | dict(settings), given, sizes=sizes))
