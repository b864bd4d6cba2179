"""How often did what a statistic promises hold? The share of trials, with its Monte Carlo standard error."""

from __future__ import annotations

from collections.abc import Iterable
from math import sqrt
from typing import Any

import numpy as np
from farshift.benchmarks.statistics.variance_estimate import make_generator


def shares(kinds: Iterable[Any], trials: int) -> list[dict[str, Any]]:
    """For each statistic and setting the share of trials that held (`coverage`; of a test its size or power), its Monte
    Carlo standard error, and the range that it should lie in (`goal`).

    kinds: the name of what a trial tells (or of each), its setting, the range that the share should lie in (or each),
    the trial, which returns whether it held (or each), and its arguments before the source of random numbers."""
    rows = []
    for named, setting, goals, trial, *arguments in kinds:
        names, goals = ([named], [goals]) if isinstance(named, str) else (named, goals)
        source = make_generator(f"simulation/{names[0]}/{setting}")
        held = np.array([trial(*arguments, source) for _ in range(trials)]).reshape(trials, -1).mean(axis=0)
        for name, goal, share in zip(names, goals, held.tolist(), strict=True):
            error = sqrt(share * (1 - share) / trials)
            rows.append({"what": name, "setting": setting, "coverage": share, "mc_se": error, "goal": list(goal)})
    return rows
