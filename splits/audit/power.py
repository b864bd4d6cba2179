"""Statistical power: the smallest difference between two models that a test part can detect."""

from __future__ import annotations

import numpy as np

# (z of 0.975) + (z of 0.8): a two-sided 5 % test finds the difference in 80 % of samples.
_POWER = 1.959964 + 0.841621
_DISCORDANT = 0.1


def minimum_detectable_difference(rows: int) -> float:
    """Return the smallest paired difference in accuracy that a two-sided 5 % test detects with 80 % power, if two
    models disagree in correctness on 10 % of the rows: 2.80 * sqrt(0.1 / rows)."""
    return float(_POWER * np.sqrt(_DISCORDANT / rows))
