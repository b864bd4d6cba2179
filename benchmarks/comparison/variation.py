"""The sources of variation of a run's scores, apart: of one run, or of runs on several draws of the same data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError
from ...splits.pages.catalogue import without_draw
from ..runs.run import Run, read_run
from ..scoring.measured import RunPredictions, cluster_names
from ..scoring.score import current
from ..statistics.clusters import codes
from ..statistics.sample import RowScores
from ..statistics.variation import Components, Draw, components, components_over_draws
from .compare import described

VIEWS = ("id", "ood")


def variation(*runs: Run | Path | str) -> dict[str, Any]:
    """How much of the variance of a single prediction's score comes from clusters, rows, training seeds, and from what
    row and seed leave over, on ID and OOD (statistics/variation.py). Several runs are of one model on several draws of
    one family, such as `mnist/pair_flip_40_draw1` and `.._draw2`, and show the part of the data draw as well.

    Raises `FarshiftError` for runs of a single seed, for a metric that is not a mean of rows, and for several runs that
    are not one model's on different draws of one family, by one protocol.

    >>> import farshift as fs
    >>> found = fs.variation(fs.baseline("modadd97/xi35", "quadratic-mlp"))
    >>> found["model"], sorted(found)
    ('quadratic-mlp', ['benchmark', 'draws', 'meaning', 'metric', 'model', 'seeds', 'views'])
    """
    if not runs:
        raise FarshiftError("variation: name a run, or the runs of several draws of one family")
    read = [one if isinstance(one, Run) else read_run(one) for one in runs]
    _held_to_one_family(read)
    metric = current(read[0]).metrics[0]
    if metric.per_row is None:
        raise FarshiftError(
            f"variation: {read[0].benchmark} is scored by {metric.signature}, which is not a mean over rows"
        )
    for one in read:
        if len(one.seeds) < 2:
            raise FarshiftError(f"variation: {one.path} has a single seed, which shows no training noise: run more")
    first, several = read[0], len(read) > 1
    return {
        "benchmark": without_draw(first.benchmark) if several else first.benchmark,
        "model": first.model,
        "metric": metric.signature,
        "draws": len(read) if several else None,
        "seeds": [len(one.seeds) for one in read],
        "views": {view: _components(read, view).to_dict() for view in VIEWS},
        "meaning": "variance of the score of one prediction, by source: analysis of variance of "
        + ("draws of the data, rows in their clusters within them, and training seeds" if several else _WITHIN),
    }


_WITHIN = "rows, in their clusters, crossed with training seeds"


def _components(runs: Sequence[Run], view: str) -> Components:
    draws = [_draw(run, view) for run in runs]
    if len(draws) > 1:
        return components_over_draws(draws)
    return components(draws[0].scores, codes(draws[0].groups))


def _draw(run: Run, view: str) -> Draw:
    benchmark = current(run)
    scored, part = RunPredictions(benchmark, run.predictions(), run), benchmark.view(view)[0]
    sample = scored.view(view, scored.choose(benchmark.rule(run.selection))).by(benchmark.metrics[0])
    assert isinstance(sample, RowScores)
    return Draw(sample.scores, part.row_ids, cluster_names(part, benchmark.kind))


def _held_to_one_family(runs: Sequence[Run]) -> None:
    """One line where several runs are not of one model on different draws of one family, by one protocol."""
    first, seen = runs[0], {runs[0].benchmark}
    for other in runs[1:]:
        alike = [
            (without_draw(one.benchmark), one.model, one.budget, one.steps, one.selection) for one in (first, other)
        ]
        if alike[0] != alike[1]:
            raise FarshiftError(
                f"variation: several runs must be of one model on draws of one family: {described(first)}, "
                f"{described(other)}"
            )
        if other.benchmark in seen:
            raise FarshiftError(f"variation: two runs are on {other.benchmark}: name one for each draw")
        seen.add(other.benchmark)
