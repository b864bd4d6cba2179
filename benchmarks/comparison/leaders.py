"""The leading runs: the run with the best OOD score, and those that do not differ significantly from it."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from ..runs.run import Run, read_run
from ..scoring.score import compute_entry_identity
from ..statistics.joint_covariance import estimate_joint_covariance
from ..statistics.ranks import compute_rank_sets
from ..statistics.variance_estimate import LEVEL
from .compare import Side


def find_leaders(runs: Sequence[Run | Path | str]) -> list[bool]:
    """Return for each run whether it has the best OOD score among the runs with its entry identity, or does not differ
    significantly from the best.

    The test is max-t over all pairs at 5 %, on the joint cluster-robust covariance of the scores on the same rows. A
    run that cannot be compared with any other, or whose score has no known variance, gets False."""
    sides = [Side(run if isinstance(run, Run) else read_run(run)) for run in runs]
    by_identity: dict[str, list[int]] = {}
    for index, side in enumerate(sides):
        by_identity.setdefault(compute_entry_identity(side.run), []).append(index)
    leads = [False] * len(sides)
    for identity, indices in by_identity.items():
        samples = {index: sides[index].sample("ood") for index in indices} if len(indices) > 1 else {}
        known = [index for index, sample in samples.items() if isfinite(sample.spread().variance)]
        if len(known) < 2:
            continue
        better = sides[known[0]].metric.better
        joint = estimate_joint_covariance([samples[index] for index in known])
        differs = compute_rank_sets(joint, better, LEVEL, f"leaders/{identity}").differs
        first = int(np.argmin(joint.values) if better == "lower" else np.argmax(joint.values))
        for number, index in enumerate(known):
            leads[index] = number == first or not differs[first, number]
    return leads
