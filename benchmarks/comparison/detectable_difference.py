"""The minimum detectable difference of a benchmark: measured on runs, or without runs from the audit's assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError
from ...core.text import format_count
from ..benchmark import Benchmark, find_benchmark
from ..runs.run import Run, read_run
from ..scoring.score import compute_entry_identity
from ..statistics.clusters import choose_cluster_treatment, count_clusters, encode_clusters
from ..statistics.detectable import DISAGREEMENT, POWER, SIZE, assume_detectable, measure_detectable
from ..statistics.not_available import NotAvailable
from .compare import describe_run, measure_run_view

VIEWS = ("id", "ood")
_SHARES = ("accuracy", "exact_match")
"""Metrics that are the share of correct rows, so that the assumed disagreement of two entries applies."""


def compute_detectable_difference(
    name: str, runs: Sequence[Run | Path | str] = (), seeds: int | None = None
) -> dict[str, Any]:
    """Compute the minimum detectable difference of two entries on the benchmark `name`, for ID and OOD rows.

    With two or more `runs`, it is measured on their pairs, as if each had been trained with `seeds` seeds if that is
    given. Without runs, two entries are assumed to disagree on a tenth of the rows. Returns plain JSON. Raises
    `FarshiftError` for a single run, and for runs of another benchmark or with different identities."""
    benchmark = find_benchmark(name)
    read = [run if isinstance(run, Run) else read_run(run) for run in runs]
    _check_comparable(name, read)
    record: dict[str, Any] = {
        "benchmark": name,
        "metric": benchmark.metrics[0].signature,
        "power": POWER,
        "size": SIZE,
        "runs": len(read),
        "seeds": seeds,
    }
    for view in VIEWS:
        record[view] = _describe_rows(benchmark, view) | (
            _measure_difference(view, read, seeds) if read else _assume_difference(benchmark, view)
        )
    return record | {"how": _describe_method(read, seeds)}


def _check_comparable(name: str, runs: list[Run]) -> None:
    if len(runs) == 1:
        raise FarshiftError("one run is not enough to measure differences: name two or more, or none to assume a rate")
    for run in runs:
        if run.benchmark != name or compute_entry_identity(run) != compute_entry_identity(runs[0]):
            raise FarshiftError(
                f"these runs are not all on {name} with one protocol: {describe_run(runs[0])}, {describe_run(run)}"
            )


def _describe_rows(benchmark: Benchmark, view: str) -> dict[str, Any]:
    """Return the number of rows and clusters of a view."""
    part, _ = benchmark.view(view)
    clusters = encode_clusters(part.row_metadata.get("group"))
    return {"rows": len(part), "clusters": count_clusters(clusters), "clusters_are": choose_cluster_treatment(clusters)}


def _measure_difference(view: str, runs: list[Run], seeds: int | None) -> dict[str, Any]:
    difference = measure_detectable(
        {f"{number}": measure_run_view(run, view) for number, run in enumerate(runs)}, seeds
    )
    return NotAvailable("not defined on these predictions").to_dict() if difference is None else difference.to_dict()


def _assume_difference(benchmark: Benchmark, view: str) -> dict[str, Any]:
    metric = benchmark.metrics[0]
    if metric.name not in _SHARES:
        return NotAvailable(f"cannot be assumed for {metric.name}: name runs to measure it on").to_dict()
    part, _ = benchmark.view(view)
    return assume_detectable(len(part), encode_clusters(part.row_metadata.get("group"))).to_dict()


def _describe_method(runs: list[Run], seeds: int | None) -> str:
    test = (
        f"smallest true difference that a two-sided {SIZE:.0%} test of a paired difference detects with {POWER:.0%} "
        "power"
    )
    if not runs:
        return f"{test}; assumes that two entries disagree on {DISAGREEMENT:.0%} of the rows, without training noise"
    trained = "with their own seeds" if seeds is None else f"as if trained with {format_count(seeds, 'seed')} each"
    over = f"{format_count(len(runs), 'run')} {trained}"
    return f"{test}; measured on {over}; brackets: 10th and 90th percentile over pairs"
