"""Measures of a run relative to other runs on the same benchmark: effective robustness, gap recovered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import BadRun, FarshiftError
from ..derived.recovered import compute_gap_recovered_on_rows
from ..derived.robustness import Point, fit_line
from ..derived.robustness import compute_effective_robustness as above_line
from ..runs.run import Run, read_run
from ..scoring.score import compute_entry_identity, get_run_benchmark
from ..statistics.clusters import describe_clusters
from ..statistics.interval import Estimate, estimate_mean
from ..statistics.variance_estimate import LEVEL
from .compare import describe_run, measure_run_view

Runs = Sequence[Run | Path | str]


def measure_effective_robustness(run: Run | Path | str, against: Runs) -> dict[str, Any]:
    """Return a run's OOD accuracy minus the accuracy that a line fitted to the baselines' runs predicts from its ID
    accuracy, with its 95 % interval (derived/robustness.py).

    All runs must have the same entry identity; at least three baselines with different ID accuracies are needed."""
    subject, *baselines = _read_related_runs([run, *against])
    metric = get_run_benchmark(subject).metrics[0]
    if metric.bounds != (0.0, 1.0) or metric.better != "higher":
        raise FarshiftError(
            f"effective robustness requires an accuracy in [0, 1]; {subject.benchmark} is scored by {metric.signature}"
        )
    points = [(_estimate_view(other, "id"), _estimate_view(other, "ood")) for other in baselines]
    line = fit_line([Point(a.value, b.value, a.rows, b.rows) for a, b in points])
    robustness = above_line(line, _estimate_view(subject, "id"), _estimate_view(subject, "ood")).to_dict()
    return {
        "benchmark": subject.benchmark,
        "model": subject.model,
        "robustness": robustness,
        "line": f"{len(baselines)} baselines ({', '.join(sorted(other.model for other in baselines))})",
        "interval": f"[low, high]: {LEVEL:.0%} t interval over rows, training seeds and the fitted line"
        + describe_clusters({"ID": points[0][0].clustering, "OOD": points[0][1].clustering}),
    }


def measure_gap_recovered(
    run: Run | Path | str, floor: Run | Path | str, ceiling: Run | Path | str, view: str = "ood"
) -> dict[str, Any]:
    """Return the share of the gap between the runs `floor` and `ceiling` that `run` closes on a view, with its Fieller
    interval, or n/a with the reason (derived/recovered.py). All runs must have the same entry identity."""
    runs = _read_related_runs([run, floor, ceiling])
    metric = get_run_benchmark(runs[0]).metrics[0]
    samples = [measure_run_view(each_run, view) for each_run in runs]
    if metric.better == "lower":
        raise FarshiftError(f"gap recovered requires a metric where higher is better; {metric.signature} is a loss")
    return {
        "benchmark": runs[0].benchmark,
        "view": view,
        "model": runs[0].model,
        "floor": runs[1].model,
        "ceiling": runs[2].model,
        "recovered": compute_gap_recovered_on_rows(*samples).to_dict(),
        "interval": f"[low, high]: {LEVEL:.0%} Fieller interval over paired rows and training seeds"
        + describe_clusters({view if view not in ("id", "ood") else view.upper(): samples[0].clustering}),
    }


def _estimate_view(run: Run, view: str) -> Estimate:
    estimate = estimate_mean(measure_run_view(run, view))
    if not estimate.defined:
        raise BadRun(
            f"{run.path}: {get_run_benchmark(run).metrics[0].signature} is not defined on view {view}: omit this run"
        )
    return estimate


def _read_related_runs(runs: Runs) -> list[Run]:
    """Read the runs; raises `FarshiftError` unless they all have the same entry identity."""
    read = [run if isinstance(run, Run) else read_run(run) for run in runs]
    for other in read[1:]:
        if compute_entry_identity(other) != compute_entry_identity(read[0]):
            raise FarshiftError(f"these runs cannot be compared: {describe_run(read[0])}, {describe_run(other)}")
    return read
