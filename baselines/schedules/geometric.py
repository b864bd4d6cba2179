"""Geometric decay: multiplied by the same factor at the end of each of `decays` equal parts of training."""

from collections.abc import Mapping
from typing import Any

SETTINGS: dict[str, Any] = {"decays": 60, "decay_percent": 96}
"""decays: parts of training. decay_percent: the percentage of the rate that is left after each."""


def factor(step: int, steps: int, settings: Mapping[str, Any]) -> float:
    return float((settings["decay_percent"] / 100) ** int(step * settings["decays"] / max(1, steps)))
