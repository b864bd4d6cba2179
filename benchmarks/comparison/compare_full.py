"""Two runs side by side, in full: what `compare` says, and where along severity and in which groups they differ.

Every number is left minus right on the same rows, with its paired 95 % interval. Points along severity and groups are
many looks at one pair of runs: each has its own interval, and the p-values of the groups are Holm's, adjusted for how
many there are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..runs.run import Run, read_run
from ..scoring.breakdown import MAX_GROUPS, severity_curve
from ..scoring.measured import Measured, Scored
from ..scoring.score import current
from ..statistics.holm import holm
from ..statistics.interval import Estimate, paired_difference
from ..statistics.paired_test import compare_rows
from ..statistics.sample import RowScores
from .compare import compare

VIEWS = ("id", "ood")


def compare_in_full(left: Run | Path | str, right: Run | Path | str) -> dict[str, Any]:
    """All that `compare` gives, and besides

    - `metric`, `better`, `bounds`, `severity_unit`: what was measured, and along what;
    - `scores`: ID and OOD of each side;
    - `test`: for ID and OOD the exact paired test, named, with its p-value, and the t test (statistics/paired_test.py);
      None for a metric that is no mean of rows;
    - `severity`: the difference at each severity (`view`, `from`, `to`);
    - `groups`: the difference in each OOD group, with its p-value and that adjusted by Holm (1979) for all groups."""
    a, b = (run if isinstance(run, Run) else read_run(run) for run in (left, right))
    found = compare(a, b)
    sides = [_Side(run) for run in (a, b)]
    benchmark, metric = sides[0].scored.benchmark, sides[0].scored.benchmark.metrics[0]
    severity = benchmark.manifest.definition.severity
    unit = "" if severity is None else f"{severity.name}, {severity.unit}" if severity.unit else severity.name
    single = min(len(a.seeds), len(b.seeds)) == 1
    return found | {
        "metric": metric.signature,
        "better": metric.better,
        "bounds": list(metric.bounds) if np.isfinite(metric.bounds).all() else None,
        "severity_unit": unit,
        "test": {view: _test(*(side.views[view].by(metric) for side in sides)) for view in VIEWS},
        "severity": _by_severity(sides, single),
        "groups": _by_group(sides, single),
    }


def judged(estimate: Estimate, single: bool) -> dict[str, Any]:
    """A difference as a record, with `distinguishable`: whether its interval excludes zero; None where there is no
    interval, or where a side has a single seed (`single`) and the interval so lacks the noise of training."""
    record = estimate.to_dict()
    unsure = single or "n/a" in record
    record["distinguishable"] = None if unsure else not record["low"] <= 0 <= record["high"]
    return {name: value for name, value in record.items() if name not in ("per_seed", "seeds")}


class _Side:
    """A run with its views, answered as its own rule chooses."""

    def __init__(self, run: Run) -> None:
        benchmark = current(run)
        self.scored = Scored(benchmark, run.predictions(), run)
        chosen = self.scored.choose(benchmark.rule(run.selection))
        self.views: dict[str, Measured] = {view: self.scored.view(view, chosen) for view in VIEWS}


def _test(left: Any, right: Any) -> dict[str, Any] | None:
    if not isinstance(left, RowScores):
        return None
    return {name: value for name, value in compare_rows(left, right).items() if name != "difference"}


def _differences(sides: list[_Side], view: str, rows: NDArray[Any], single: bool) -> dict[str, Any]:
    return judged(paired_difference(*_samples(sides, view, rows)), single)


def _samples(sides: list[_Side], view: str, rows: NDArray[Any]) -> list[Any]:
    """Some rows of a view by the primary metric, of both sides."""
    metric = sides[0].scored.benchmark.metrics[0]
    return [side.views[view].select(rows).by(metric) for side in sides]


def _by_severity(sides: list[_Side], single: bool) -> list[dict[str, Any]]:
    benchmark = sides[0].scored.benchmark
    curve = severity_curve(sides[0].scored, sides[0].views, benchmark.metrics[0])
    found = []
    for point in curve:
        severity = benchmark.view(point.view)[0].carried["severity"]
        rows = (severity >= point.first) & (severity <= point.last)
        place = {"view": point.view, "from": point.first, "to": point.last}
        found.append(place | _differences(sides, point.view, rows, single))
    return [point for point in found if "n/a" not in point]


def _by_group(sides: list[_Side], single: bool) -> dict[str, dict[str, Any]]:
    groups = sides[0].scored.benchmark.view("ood")[0].carried.get("group")
    names = [] if groups is None else sorted(set(groups.tolist()))
    if groups is None or not 2 <= len(names) <= MAX_GROUPS:
        return {}
    found = {str(name): _differences(sides, "ood", groups == name, single) for name in names}
    metric = sides[0].scored.benchmark.metrics[0]
    if metric.per_row is not None:
        tests = {name: compare_rows(*_samples(sides, "ood", groups == name))["t"] for name in names}
        known = {str(name): test["p"] for name, test in tests.items() if test is not None}
        for (name, p), adjusted in zip(known.items(), holm([*known.values()]), strict=True):
            found[name] |= {"p": float(f"{p:.6g}"), "p_holm": float(f"{adjusted:.6g}")}
    return found
