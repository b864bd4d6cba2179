"""Mean and standard deviation over replicates, as benchmarks print them: training seeds, or folds of the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

from ...core.errors import FarshiftError
from ...core.listings.plural import format_count
from ..runs.run import Run, read_run
from ..statistics.variance_estimate import compute_average
from .compare import Side

VIEWS = ("id", "ood")


def replicates(*runs: Run | Path | str) -> dict[str, Any]:
    """ID and OOD by the primary metric: the mean over replicates, and their sample standard deviation (n - 1).

    Of one run the replicates are its training seeds; of several, on the folds of one set (`wilds_poverty/official`,
    `.._fold_b` ..), each run is one, by its mean over seeds. This is what WILDS prints (mean and `np.std(.., ddof=1)`:
    p-lambda/wilds, examples/evaluate.py). It says how far replicates differ, and is no interval: `fs.score` has those.

    Raises `FarshiftError` for no run, and for several that are not of one model and metric on different benchmarks.

    >>> import farshift as fs
    >>> found = fs.replicates(fs.baseline("modadd97/xi35", "quadratic-mlp"))
    >>> found["replicates"], len(found["views"]["ood"]["values"])
    ('5 seeds', 5)
    """
    if not runs:
        raise FarshiftError("replicates: name a run, or the runs on the folds of a set")
    read = [Side(run if isinstance(run, Run) else read_run(run)) for run in runs]
    if len(read) > 1:
        _check_folds(read)
    return {
        "benchmarks": [run.run.benchmark for run in read],
        "model": read[0].run.model,
        "metric": read[0].metric.signature,
        "replicates": f"{len(read)} folds" if len(read) > 1 else format_count(len(read[0].run.seeds), "seed"),
        "views": {view: _summarise_values(_list_values(read, view)) for view in VIEWS},
    }


def _check_folds(read: Sequence[Side]) -> None:
    names = [side.run.benchmark for side in read]
    if len(set(names)) < len(names):
        raise FarshiftError("replicates: two runs are on one benchmark: name one run, or runs on different folds")
    if len({(side.run.model, side.metric.signature, side.run.budget, side.run.selection) for side in read}) > 1:
        raise FarshiftError("replicates: the runs are not one model's by one metric, budget and selection rule")


def _list_values(read: Sequence[Side], view: str) -> list[float]:
    each = [side.sample(view).per_seed for side in read]
    return each[0] if len(each) == 1 else [compute_average(values) for values in each]


def _summarise_values(values: list[float]) -> dict[str, Any]:
    return {
        "mean": round(compute_average(values), 6),
        "sd": round(stdev(values), 6) if len(values) > 1 else None,
        "values": [round(value, 6) for value in values],
    }
