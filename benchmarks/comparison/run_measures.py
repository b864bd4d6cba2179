"""Measures of runs: effective robustness, gap recovered, replicates, variance components, detectable difference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import stdev
from typing import Any

from ...core.errors import BadRun, FarshiftError
from ...core.text import format_count
from ..benchmark import find_benchmark
from ..derived.recovered import compute_gap_recovered_on_rows
from ..derived.robustness import Point, fit_line
from ..derived.robustness import compute_effective_robustness as above_line
from ..runs.run import Run
from ..scoring.score import compute_entry_identity, get_run_benchmark
from ..statistics.clusters import describe_clusters, encode_clusters, make_clustering
from ..statistics.detectable import DISAGREEMENT, POWER, SIZE, assume_detectable, measure_detectable
from ..statistics.interval import Estimate, NotAvailable, estimate_mean
from ..statistics.variance_estimate import LEVEL, compute_average
from ..statistics.variation import estimate_variation
from .compare import VIEWS, Runs, Side, describe_run, read_related_runs, read_runs

SHARES = ("accuracy", "exact_match")
"""Metrics that are the share of correct rows, so that the assumed disagreement of two entries applies."""


def measure_effective_robustness(run: Run | Path | str, against: Runs) -> dict[str, Any]:
    """Return a run's OOD accuracy minus the accuracy that a line fitted to the baselines' runs predicts from its ID
    accuracy, with its 95 % interval (derived/robustness.py).

    All runs must have the same entry identity; at least three baselines with different ID accuracies are needed."""
    subject, *baselines = read_related_runs([run, *against])
    metric = get_run_benchmark(subject).metrics[0]
    if metric.bounds != (0.0, 1.0) or metric.better != "higher":
        raise FarshiftError(
            f"effective robustness requires an accuracy in [0, 1]; {subject.benchmark} is scored by {metric.name}"
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
    runs = read_related_runs([run, floor, ceiling])
    metric = get_run_benchmark(runs[0]).metrics[0]
    samples = [Side(each_run).sample(view) for each_run in runs]
    if metric.better == "lower":
        raise FarshiftError(f"gap recovered requires a metric where higher is better; {metric.name} is a loss")
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
    estimate = estimate_mean(Side(run).sample(view))
    if not estimate.defined:
        raise BadRun(
            f"{run.path}: {get_run_benchmark(run).metrics[0].name} is not defined on view {view}: omit this run"
        )
    return estimate


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
    read = [Side(run) for run in read_runs(runs)]
    if len(read) > 1:
        _check_folds(read)
    return {
        "benchmarks": [run.run.benchmark for run in read],
        "model": read[0].run.model,
        "metric": read[0].metric.signature,
        "replicates": f"{len(read)} folds" if len(read) > 1 else format_count(len(read[0].run.seeds), "seed"),
        "views": {view: _summarise_view(read, view) for view in VIEWS},
    }


def _check_folds(read: Sequence[Side]) -> None:
    names = [side.run.benchmark for side in read]
    if len(set(names)) < len(names):
        raise FarshiftError("replicates: two runs are on the same benchmark: name one run, or runs on different folds")
    if len({(side.run.model, side.metric.signature, side.run.budget, side.run.selection) for side in read}) > 1:
        raise FarshiftError("replicates: the runs must have the same model, metric, budget and selection rule")


def _summarise_view(read: Sequence[Side], view: str) -> dict[str, Any]:
    each = [side.sample(view).per_seed for side in read]
    values = each[0] if len(each) == 1 else [compute_average(per_seed) for per_seed in each]
    return {
        "mean": round(compute_average(values), 6),
        "sd": round(stdev(values), 6) if len(values) > 1 else None,
        "values": [round(value, 6) for value in values],
    }


def variation(run: Run | Path | str) -> dict[str, Any]:
    """Return the components of the variance of a single prediction's score, on ID and OOD: clusters, rows, training
    seeds and the residual (statistics/variation.py).

    Raises `FarshiftError` for a run with a single seed, and for a metric that is not a mean over rows.

    >>> import farshift as fs
    >>> result = fs.variation(fs.baseline("modadd97/xi35", "quadratic-mlp"))
    >>> result["model"], sorted(result)
    ('quadratic-mlp', ['benchmark', 'meaning', 'metric', 'model', 'seeds', 'views'])
    """
    (only,) = read_runs([run])
    side = Side(only)
    if len(only.seeds) < 2:
        raise FarshiftError(f"variation: {only.path} has a single seed: train more seeds to measure training noise")
    views = {}
    for view in VIEWS:
        if (components := estimate_variation(side.sample(view))) is None:
            name = side.metric.name
            raise FarshiftError(f"variation: {only.benchmark} is scored by {name}, which is not a mean over rows")
        record = components.to_dict()
        views[view] = {"components": record["components"], "total": record["total"]}
    return {
        "benchmark": only.benchmark,
        "model": only.model,
        "metric": side.metric.signature,
        "seeds": len(only.seeds),
        "views": views,
        "meaning": "variance of the score of one prediction, by source: analysis of variance of rows, in their "
        "clusters, crossed with training seeds",
    }


def compute_detectable_difference(name: str, runs: Runs = (), seeds: int | None = None) -> dict[str, Any]:
    """Compute the minimum detectable difference of two entries on the benchmark `name`, for ID and OOD rows.

    With two or more `runs`, it is measured on their pairs, as if each had been trained with `seeds` seeds if that is
    given. Without runs, two entries are assumed to disagree on a tenth of the rows. Returns plain JSON. Raises
    `FarshiftError` for a single run, and for runs of another benchmark or with different identities."""
    read = read_runs(runs)
    _check_comparable(name, read)
    benchmark = get_run_benchmark(read[0]) if read else find_benchmark(name)
    metric = benchmark.metrics[0]
    record: dict[str, Any] = {
        "benchmark": name,
        "metric": metric.signature,
        "power": POWER,
        "size": SIZE,
        "runs": len(read),
        "seeds": seeds,
    }
    for view in VIEWS:
        part, _ = benchmark.view(view)
        clusters = encode_clusters(part.row_metadata.get("group"))
        if read:
            samples = {str(number): Side(run).sample(view) for number, run in enumerate(read)}
            difference, why = measure_detectable(samples, seeds), "not defined on these predictions"
        else:
            difference = assume_detectable(len(part), clusters) if metric.name in SHARES else None
            why = f"cannot be assumed for {metric.name}: name runs to measure it on"
        rows = {"rows": len(part), **make_clustering(clusters).to_dict()}
        record[view] = rows | (difference or NotAvailable(why)).to_dict()
    return record | {"how": _describe_method(read, seeds)}


def _check_comparable(name: str, runs: list[Run]) -> None:
    if len(runs) == 1:
        raise FarshiftError("one run is not enough to measure differences: name two or more, or none to assume a rate")
    for run in runs:
        if run.benchmark != name or compute_entry_identity(run) != compute_entry_identity(runs[0]):
            raise FarshiftError(
                f"these runs are not all on {name} with one protocol: {describe_run(runs[0])}, {describe_run(run)}"
            )


def _describe_method(runs: list[Run], seeds: int | None) -> str:
    power = f"{SIZE:.0%} test of a paired difference detects with {POWER:.0%} power"
    test = f"smallest true difference that a two-sided {power}"
    if not runs:
        return f"{test}; assumes that two entries disagree on {DISAGREEMENT:.0%} of the rows, without training noise"
    trained = "with their own seeds" if seeds is None else f"as if trained with {format_count(seeds, 'seed')} each"
    over = f"{format_count(len(runs), 'run')} {trained}"
    return f"{test}; measured on {over}; brackets: 10th and 90th percentile over pairs"
