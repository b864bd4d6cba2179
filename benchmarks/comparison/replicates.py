"""Mean and standard deviation over replicates (training seeds or folds of the data), as benchmarks report them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

from ...core.errors import FarshiftError
from ...core.text import format_count
from ..runs.run import Run, read_run
from ..statistics.variance_estimate import compute_average
from .compare import Side

VIEWS = ("id", "ood")


def replicates(*runs: Run | Path | str) -> dict[str, Any]:
    """Return the mean and the sample standard deviation (n - 1) over replicates of ID and OOD by the primary metric.

    The replicates of one run are its training seeds. Several runs, on the folds of one data set
    (`wilds_poverty/official`, `.._fold_b` ..), are one replicate each, by their mean over seeds. This is what WILDS
    reports (mean and `np.std(.., ddof=1)`: p-lambda/wilds, examples/evaluate.py). The standard deviation describes the
    spread of replicates and is not a confidence interval; see `fs.score` for those.

    Raises `FarshiftError` without a run, and for several runs unless they are of one model and metric on different
    benchmarks.

    >>> import farshift as fs
    >>> result = fs.replicates(fs.baseline("modadd97/xi35", "quadratic-mlp"))
    >>> result["replicates"], len(result["views"]["ood"]["values"])
    ('5 seeds', 5)
    """
    if not runs:
        raise FarshiftError("replicates: name one run, or the runs on the folds of a data set")
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
        raise FarshiftError("replicates: two runs are on the same benchmark: name one run, or runs on different folds")
    if len({(side.run.model, side.metric.signature, side.run.budget, side.run.selection) for side in read}) > 1:
        raise FarshiftError("replicates: the runs must have the same model, metric, budget and selection rule")


def _list_values(read: Sequence[Side], view: str) -> list[float]:
    each = [side.sample(view).per_seed for side in read]
    return each[0] if len(each) == 1 else [compute_average(values) for values in each]


def _summarise_values(values: list[float]) -> dict[str, Any]:
    return {
        "mean": round(compute_average(values), 6),
        "sd": round(stdev(values), 6) if len(values) > 1 else None,
        "values": [round(value, 6) for value in values],
    }
