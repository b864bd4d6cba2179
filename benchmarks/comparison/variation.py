"""Variance components of a run's scores: for one run, or for runs on several draws of the same data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError
from ...splits.catalogue import strip_draw
from ..runs.run import Run, read_run
from ..scoring.answered_rows import RunPredictions, get_cluster_names
from ..scoring.score import get_run_benchmark
from ..statistics.clusters import encode_clusters
from ..statistics.sample import RowScores
from ..statistics.variation import Components, Draw, estimate_components, estimate_components_over_draws
from .compare import describe_run

VIEWS = ("id", "ood")


def variation(*runs: Run | Path | str) -> dict[str, Any]:
    """Return the components of the variance of a single prediction's score, on ID and OOD: clusters, rows, training
    seeds and the residual (statistics/variation.py).

    Several runs must be of one model on several draws of one family, such as `mnist/pair_flip_40_draw1` and
    `.._draw2`; the component of the data draw is then estimated as well.

    Raises `FarshiftError` for a run with a single seed, for a metric that is not a mean over rows, and for several runs
    unless they are of one model on different draws of one family, with the same protocol.

    >>> import farshift as fs
    >>> result = fs.variation(fs.baseline("modadd97/xi35", "quadratic-mlp"))
    >>> result["model"], sorted(result)
    ('quadratic-mlp', ['benchmark', 'draws', 'meaning', 'metric', 'model', 'seeds', 'views'])
    """
    if not runs:
        raise FarshiftError("variation: name one run, or the runs on several draws of one family")
    read = [run if isinstance(run, Run) else read_run(run) for run in runs]
    _check_one_family(read)
    metric = get_run_benchmark(read[0]).metrics[0]
    if metric.per_row is None:
        raise FarshiftError(
            f"variation: {read[0].benchmark} is scored by {metric.signature}, which is not a mean over rows"
        )
    for run in read:
        if len(run.seeds) < 2:
            raise FarshiftError(f"variation: {run.path} has a single seed: train more seeds to measure training noise")
    first, is_several = read[0], len(read) > 1
    return {
        "benchmark": strip_draw(first.benchmark) if is_several else first.benchmark,
        "model": first.model,
        "metric": metric.signature,
        "draws": len(read) if is_several else None,
        "seeds": [len(run.seeds) for run in read],
        "views": {view: _estimate_components(read, view).to_dict() for view in VIEWS},
        "meaning": "variance of the score of one prediction, by source: analysis of variance of "
        + ("draws of the data, rows in their clusters within them, and training seeds" if is_several else _WITHIN),
    }


_WITHIN = "rows, in their clusters, crossed with training seeds"


def _estimate_components(runs: Sequence[Run], view: str) -> Components:
    draws = [_read_draw(run, view) for run in runs]
    if len(draws) > 1:
        return estimate_components_over_draws(draws)
    return estimate_components(draws[0].scores, encode_clusters(draws[0].groups))


def _read_draw(run: Run, view: str) -> Draw:
    benchmark = get_run_benchmark(run)
    scored, part = RunPredictions(benchmark, run.predictions(), run), benchmark.view(view)[0]
    sample = scored.view(view, scored.choose(benchmark.rule(run.selection))).by(benchmark.metrics[0])
    assert isinstance(sample, RowScores)
    return Draw(sample.scores, part.row_ids, get_cluster_names(part, benchmark.kind))


def _check_one_family(runs: Sequence[Run]) -> None:
    """Raise `FarshiftError` unless the runs are of one model on different draws of one family, with one protocol."""
    first, used_benchmarks = runs[0], {runs[0].benchmark}
    for other in runs[1:]:
        protocols = [
            (strip_draw(run.benchmark), run.model, run.budget, run.steps, run.selection) for run in (first, other)
        ]
        if protocols[0] != protocols[1]:
            raise FarshiftError(
                f"variation: several runs must be of one model on draws of the same family: {describe_run(first)}, "
                f"{describe_run(other)}"
            )
        if other.benchmark in used_benchmarks:
            raise FarshiftError(f"variation: two runs are on {other.benchmark}: name one run for each draw")
        used_benchmarks.add(other.benchmark)
