"""A constant learning rate."""

from collections.abc import Mapping
from typing import Any

SETTINGS: dict[str, Any] = {}


def factor(step: int, steps: int, settings: Mapping[str, Any]) -> float:
    return 1.0
