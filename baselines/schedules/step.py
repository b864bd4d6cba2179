"""Step decay: multiplied by `decay` at each of the `milestones` (percent of all steps), as for residual networks: He et
al., CVPR 2016 (arXiv:1512.03385)."""

from collections.abc import Mapping
from typing import Any

SETTINGS: dict[str, Any] = {"milestones": [50, 75], "decay_percent": 10}


def factor(step: int, steps: int, settings: Mapping[str, Any]) -> float:
    passed = sum(100 * step >= milestone * steps for milestone in settings["milestones"])
    return float((settings["decay_percent"] / 100) ** passed)
