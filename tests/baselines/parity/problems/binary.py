"""Three steps of training on the toy with labels of two classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from farshift.baselines.encoding.encoding import Sizes

from .. import toy
from .steps import data, steps, training

CLASSES = 2


def ours(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps.py`."""
    sizes = Sizes(CLASSES, numbers=toy.INPUTS)
    return steps(training(name, settings, data(y=toy.labels(CLASSES)), sizes=sizes))
