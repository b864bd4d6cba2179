"""Three steps of MIRO, whose copy of the network at the start has the toy's weights too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import toy
from .steps import steps, training


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps`."""
    built = training(algorithm, settings)
    toy.fill(built.stack.algorithm.oracle.parameters())  # type: ignore[union-attr]
    return steps(built)
