"""Full comparison of two runs: the result of `compare`, and the differences by severity and by group.

Every number is left minus right on the same rows, with its paired 95 % interval. The intervals by severity and by
group are not adjusted for multiple comparisons; the p-values of the groups are, by Holm's method.
"""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runs.run import Run
from ..scoring.breakdown import MAX_GROUPS, compute_severity_curve
from ..scoring.score import compute_entry_identity, get_severity_unit
from ..statistics.interval import estimate_paired_difference
from ..statistics.joint_covariance import estimate_joint_covariance
from ..statistics.paired_test import adjust_by_holm, compare_rows
from ..statistics.ranks import compute_rank_sets
from ..statistics.sample import Sample
from ..statistics.variance_estimate import LEVEL, has_finite_ends
from .compare import Runs, Side, compare_sides, has_single_seed, judge_difference, read_runs, read_sides

Pair = tuple[Side, Side]

VIEWS = ("id", "ood")


def compare_in_full(left: Run | Path | str, right: Run | Path | str) -> dict[str, Any]:
    """Return the result of `compare`, and in addition

    - `metric`, `better`, `bounds`, `severity_unit`: the metric, and the unit of severity;
    - `scores`: ID and OOD of each side;
    - `test`: for ID and OOD the exact paired test, with its name and p-value, and the t test
      (statistics/paired_test.py); only the t test for a metric that is not a mean over rows;
    - `severity`: the difference at each severity (`view`, `from`, `to`);
    - `groups`: the difference in each OOD group, with its p-value and the p-value adjusted for all groups (Holm
    1979)."""
    pair = read_sides(left, right)
    benchmark, metric = pair[0].benchmark, pair[0].metric
    return compare_sides(*pair) | {
        "metric": metric.signature,
        "better": metric.better,
        "bounds": list(metric.bounds) if has_finite_ends(metric.bounds) else None,
        "severity_unit": get_severity_unit(benchmark),
        "test": {view: _run_test(*(side.sample(view) for side in pair)) for view in VIEWS},
        "severity": _compare_by_severity(pair),
        "groups": _compare_by_group(pair),
    }


def _run_test(left: Sample, right: Sample) -> dict[str, Any]:
    return {name: value for name, value in compare_rows(left, right).items() if name != "difference"}


def _sample_rows(pair: Pair, view: str, rows: NDArray[Any]) -> list[Sample]:
    """Return the scores of both sides on some rows of a view, by the primary metric."""
    return [side.rows(view).select(rows).by(side.metric) for side in pair]


def _compare_by_severity(pair: Pair) -> list[dict[str, Any]]:
    left, single = pair[0], has_single_seed(*pair)
    curve = compute_severity_curve(left.scored, {view: left.rows(view) for view in VIEWS}, left.metric)
    differences = []
    for point in curve:
        severity = left.benchmark.view(point.view)[0].row_metadata["severity"]
        rows = (severity >= point.first) & (severity <= point.last)
        difference = estimate_paired_difference(*_sample_rows(pair, point.view, rows))
        if difference.defined:
            location = {"view": point.view, "from": point.first, "to": point.last}
            differences.append(location | judge_difference(difference, single))
    return differences


def _compare_by_group(pair: Pair) -> dict[str, dict[str, Any]]:
    groups = pair[0].benchmark.view("ood")[0].row_metadata.get("group")
    names = [] if groups is None else sorted(set(groups.tolist()))
    if groups is None or not 2 <= len(names) <= MAX_GROUPS:
        return {}
    samples = {str(name): _sample_rows(pair, "ood", groups == name) for name in names}
    differences = {
        name: judge_difference(estimate_paired_difference(*sample_pair), has_single_seed(*pair))
        for name, sample_pair in samples.items()
    }
    tests = {name: compare_rows(*sample_pair)["t"] for name, sample_pair in samples.items()}
    known = {name: test["p"] for name, test in tests.items() if test is not None}
    for (name, p), adjusted in zip(known.items(), adjust_by_holm([*known.values()]), strict=True):
        differences[name] |= {"p": float(f"{p:.6g}"), "p_holm": float(f"{adjusted:.6g}")}
    return differences


def find_leaders(runs: Runs) -> list[bool]:
    """Return for each run whether it has the best OOD score among the runs with its entry identity, or does not differ
    significantly from the best.

    The test is max-t over all pairs at 5 %, on the joint cluster-robust covariance of the scores on the same rows. A
    run that cannot be compared with any other, or whose score has no known variance, gets False."""
    sides = [Side(run) for run in read_runs(runs)]
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
