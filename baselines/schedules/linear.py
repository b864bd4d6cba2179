"""Linear decay to 0."""

from collections.abc import Mapping
from typing import Any

SETTINGS: dict[str, Any] = {}


def factor(step: int, steps: int, settings: Mapping[str, Any]) -> float:
    return (steps - step) / max(1, steps)
