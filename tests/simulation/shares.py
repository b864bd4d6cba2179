"""How often did what a statistic promises hold? The share of trials, with its Monte Carlo standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import sqrt
from typing import Any

import numpy as np
from farshift.benchmarks.statistics.variance_estimate import make_generator

Names = tuple[str, ...]
Trials = tuple[Names, str, tuple[Any, ...], Callable[[np.random.Generator], Any]]
"""The names of what a trial tells, its setting, the range that each share should lie in, and the trial: whether each
of these held."""


def shares(kinds: Iterable[Trials], trials: int) -> list[dict[str, Any]]:
    """For each statistic and setting the share of trials that held (`coverage`; of a test its size or power), its Monte
    Carlo standard error, and the range that it should lie in (`goal`)."""
    rows = []
    for names, setting, goals, trial in kinds:
        source = make_generator(f"simulation/{names[0]}/{setting}")
        locked = np.array([trial(source) for _ in range(trials)]).mean(axis=0)
        for name, goal, share in zip(names, goals, locked.tolist(), strict=True):
            error = sqrt(share * (1 - share) / trials)
            rows.append({"what": name, "setting": setting, "coverage": share, "mc_se": error, "goal": list(goal)})
    return rows
