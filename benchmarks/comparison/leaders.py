"""Which of several runs lead: the best OOD score, and those that do not differ significantly from it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from ..runs.run import Run, read_run
from ..scoring.score import entry_identity
from ..statistics.joint_covariance import joint_covariance
from ..statistics.margin import LEVEL
from ..statistics.ranks import rank_sets
from .compare import Side


def leaders(runs: Sequence[Run | Path | str]) -> list[bool]:
    """For each run whether it is the best by OOD of those that it can be compared with (those of its entry identity),
    or does not differ significantly from the best: max-t over all their pairs at 5 %, on the joint cluster-robust
    covariance of their scores on the same rows. Of a run that stands alone, or whose score has no known variance, it
    is False."""
    sides = [Side(run if isinstance(run, Run) else read_run(run)) for run in runs]
    together: dict[str, list[int]] = {}
    for place, side in enumerate(sides):
        together.setdefault(entry_identity(side.run), []).append(place)
    found = [False] * len(sides)
    for identity, places in together.items():
        samples = {place: sides[place].sample("ood") for place in places} if len(places) > 1 else {}
        known = [place for place, sample in samples.items() if isfinite(sample.spread().variance)]
        if len(known) < 2:
            continue
        better = sides[known[0]].metric.better
        joint = joint_covariance([samples[place] for place in known])
        differs = rank_sets(joint, better, LEVEL, f"leaders/{identity}").differs
        first = int(np.argmin(joint.values) if better == "lower" else np.argmax(joint.values))
        for number, place in enumerate(known):
            found[place] = number == first or not differs[first, number]
    return found
