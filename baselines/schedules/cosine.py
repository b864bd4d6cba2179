"""Cosine annealing to 0 (Loshchilov and Hutter, ICLR 2017, arXiv:1608.03983, without restarts)."""

import math
from collections.abc import Mapping
from typing import Any

SETTINGS: dict[str, Any] = {}


def factor(step: int, steps: int, settings: Mapping[str, Any]) -> float:
    return 0.5 + 0.5 * math.cos(math.pi * step / max(1, steps))
