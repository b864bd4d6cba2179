"""Runs in relation to other runs of the same benchmark: effective robustness, gap recovered."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import BadRun, FarshiftError
from ..derived.recovered import gap_recovered_on_rows
from ..derived.robustness import Point, fit_line
from ..derived.robustness import effective_robustness as above_line
from ..runs.run import Run, read_run
from ..scoring.score import current, entry_identity
from ..statistics.clusters import in_plain_english
from ..statistics.interval import Estimate, mean
from ..statistics.margin import LEVEL
from .compare import described, run_view

Runs = Sequence[Run | Path | str]


def effective_robustness(run: Run | Path | str, against: Runs) -> dict[str, Any]:
    """A run's OOD accuracy minus what the line through the baselines' runs predicts from its ID accuracy, with its
    95 % interval (derived/robustness.py). All of one entry identity; three baselines or more, of different ID
    accuracy."""
    one, *baselines = _read([run, *against])
    metric = current(one).metrics[0]
    if metric.bounds != (0.0, 1.0) or metric.better != "higher":
        raise FarshiftError(
            f"effective robustness is of accuracies in [0, 1], and {one.benchmark} is scored by {metric.signature}"
        )
    points = [(_estimate(other, "id"), _estimate(other, "ood")) for other in baselines]
    line = fit_line([Point(a.value, b.value, a.rows, b.rows) for a, b in points])
    found = above_line(line, _estimate(one, "id"), _estimate(one, "ood")).to_dict()
    return {
        "benchmark": one.benchmark,
        "model": one.model,
        "robustness": found,
        "line": f"{len(baselines)} baselines ({', '.join(sorted(other.model for other in baselines))})",
        "interval": f"[low, high]: {LEVEL:.0%} t interval over rows, training seeds, and the line itself"
        + in_plain_english({"ID": points[0][0].clustering, "OOD": points[0][1].clustering}),
    }


def gap_recovered(
    run: Run | Path | str, floor: Run | Path | str, ceiling: Run | Path | str, view: str = "ood"
) -> dict[str, Any]:
    """The share of the gap between the runs `floor` and `ceiling` that `run` closes on a view, with its Fieller
    interval, or n/a with the reason (derived/recovered.py). All of one entry identity."""
    runs = _read([run, floor, ceiling])
    metric = current(runs[0]).metrics[0]
    samples = [run_view(one, view) for one in runs]
    if metric.better == "lower":
        raise FarshiftError(f"gap recovered is of scores where higher is better, and {metric.signature} is a loss")
    return {
        "benchmark": runs[0].benchmark,
        "view": view,
        "model": runs[0].model,
        "floor": runs[1].model,
        "ceiling": runs[2].model,
        "recovered": gap_recovered_on_rows(*samples).to_dict(),
        "interval": f"[low, high]: {LEVEL:.0%} Fieller interval over paired rows and training seeds"
        + in_plain_english({view if view not in ("id", "ood") else view.upper(): samples[0].clustering}),
    }


def _estimate(run: Run, view: str) -> Estimate:
    estimate = mean(run_view(run, view))
    if not estimate.defined:
        raise BadRun(f"{run.path}: {current(run).metrics[0].signature} is not defined on the view {view}: leave it out")
    return estimate


def _read(runs: Runs) -> list[Run]:
    """The runs; refused where they are not all of one entry identity."""
    read = [one if isinstance(one, Run) else read_run(one) for one in runs]
    for other in read[1:]:
        if entry_identity(other) != entry_identity(read[0]):
            raise FarshiftError(f"these runs cannot be related: {described(read[0])}, {described(other)}")
    return read
