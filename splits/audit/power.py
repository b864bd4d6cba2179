"""How small a difference between two models a test part can show."""

from __future__ import annotations

import numpy as np

# (z of 0.975) + (z of 0.8): a two-sided 5 % test finds the difference in 80 % of samples.
_POWER = 1.959964 + 0.841621
_DISCORDANT = 0.1


def minimum_detectable_difference(rows: int) -> float:
    """The smallest paired difference in accuracy found with 80 % power at the 5 % level, when two models
    disagree in correctness on 10 % of the rows: 2.80 * sqrt(0.1 / rows)."""
    return float(_POWER * np.sqrt(_DISCORDANT / rows))
