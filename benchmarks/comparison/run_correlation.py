"""Kendall's tau-b between a diagnostic of trained replicas and how they generalise, over runs on several data sets.

On each benchmark tau-b (statistics/concurrence.py) is that of all replicas of its runs, of whatever settings, seeds and
models, that were trained with `--diagnose`. The value is its mean over data sets, and the interval a 95 % t interval
over data sets: replicas on one data set share its rows, and count as one observation of how well the diagnostic
predicts. Benchmarks of one source are one data set. One data set has a value and no interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from pathlib import Path
from statistics import fmean, variance
from typing import Any, Literal

import numpy as np

from ...core.errors import FarshiftError, UnknownName
from ..runs.run import Run
from ..statistics.concurrence import MORE_THAN, compute_tau_interval
from ..statistics.variance_estimate import LEVEL, VarianceEstimate, compute_reach
from .compare import Side, read_runs

Outcome = Literal["id", "ood", "gap"]


def correlate_diagnostic(runs: Sequence[Run | Path | str], diagnostic: str, outcome: Outcome = "gap") -> dict[str, Any]:
    """Return the mean over data sets of tau-b between a diagnostic and the ID or OOD score or their gap (ID less OOD),
    with low and high (NaN for one data set), tau by data set and the numbers of replicas. Losses are negated.

    diagnostic: such as `pac_bayes.flatness`. Replicas without a value of it do not count, nor data sets with six
    replicas or fewer, or where all are alike. Raises `UnknownName` for a value that no run has, and `FarshiftError` if
    no data set counts."""
    by_benchmark: dict[str, list[tuple[float, float]]] = {}
    known: set[str] = set()
    for run in read_runs(runs):
        seeds = run.card.to_dict()["spent"]["by_seed"]
        known |= {name for values in seeds.values() for name in values if "." in name}
        outcomes = dict(zip(run.seeds, _read_outcomes(run, outcome), strict=True))
        pairs = [
            (value, outcomes[seed])
            for seed in run.seeds
            if isinstance(value := seeds[f"seed_{seed}"].get(diagnostic), int | float)
        ]
        by_benchmark.setdefault(run.benchmark, []).extend(pairs)
    if diagnostic not in known:
        raise UnknownName("diagnostic of these runs", diagnostic, known)
    taus: dict[str, list[float]] = {}
    replicas: dict[str, int] = {}
    for benchmark, pairs in sorted(by_benchmark.items()):
        x, y = np.array(pairs, np.float64).reshape(-1, 2).T
        tau = compute_tau_interval(x, y, draws=1)[0] if len(pairs) > MORE_THAN else nan
        if not np.isnan(tau):
            data_set = benchmark.partition("/")[0]
            taus.setdefault(data_set, []).append(tau)
            replicas[data_set] = replicas.get(data_set, 0) + len(pairs)
    if not taus:
        raise FarshiftError(f"{diagnostic}: no data set has more than {MORE_THAN} replicas that differ in it")
    means = {name: fmean(values) for name, values in taus.items()}
    value, reach = fmean(means.values()), nan
    if len(means) > 1:
        spread = VarianceEstimate(variance(means.values()) / len(means), len(means) - 1)
        reach = compute_reach(spread)
    return {
        "diagnostic": diagnostic,
        "outcome": outcome,
        "tau": value,
        "low": max(-1.0, value - reach) if len(means) > 1 else nan,
        "high": min(1.0, value + reach) if len(means) > 1 else nan,
        "by_data_set": means,
        "replicas": replicas,
        "interval": f"[low, high]: {LEVEL:.0%} t interval over {len(means)} data sets",
    }


def _read_outcomes(run: Run, outcome: Outcome) -> list[float]:
    """The outcome of each seed; a loss is negated."""
    side = Side(run)
    sign = 1 if side.metric.better == "higher" else -1
    each = {view: [sign * value for value in side.sample(view).per_seed] for view in ("id", "ood")}
    return each[outcome] if outcome != "gap" else [a - b for a, b in zip(each["id"], each["ood"], strict=True)]
