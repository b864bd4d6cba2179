"""Three steps of two networks, whose averaged weights begin with others of the toy's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import toy
from .steps import steps, training


def ours(algorithm: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """As `steps`, and `averages` after the last of them."""
    built = training(algorithm, settings)
    slow = built.stack.algorithm.slow
    toy.fill(slow.parameters(), 8)  # type: ignore[union-attr]
    return steps(built) | {"averages": toy.flat(slow.parameters())}  # type: ignore[union-attr]
