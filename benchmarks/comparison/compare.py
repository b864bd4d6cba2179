"""Comparison of two runs on the same rows: left minus right in ID, OOD and gap, by severity and by group.

The intervals by severity and by group are not adjusted for multiple comparisons; the p-values of the groups are, by
Holm's method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadRun, FarshiftError, UnknownName
from ...core.listings import render_table, to_data_frame
from ...core.text import format_count
from ..benchmark import Benchmark
from ..metrics import Metric
from ..runs.run import Run, read_run
from ..scoring.answered_rows import AnsweredRows, Chosen, RunPredictions
from ..scoring.apply_selection import explain_unavailable
from ..scoring.breakdown import MAX_GROUPS, compute_severity_curve
from ..scoring.score import compute_entry_identity, get_run_benchmark, get_severity_unit
from ..selection import Rule, load_rules
from ..statistics.clusters import describe_clusters
from ..statistics.interval import (
    KEY,
    Estimate,
    Interval,
    NotAvailable,
    Record,
    estimate_gap_difference,
    estimate_paired_difference,
)
from ..statistics.joint_covariance import estimate_joint_covariance
from ..statistics.paired_test import adjust_by_holm, compare_rows
from ..statistics.ranks import compute_rank_sets
from ..statistics.sample import Sample
from ..statistics.variance_estimate import LEVEL, has_finite_ends

if TYPE_CHECKING:
    import pandas as pd


Runs = Sequence[Run | Path | str]


@dataclass(frozen=True)
class Side:
    """One of the two compared runs. Its predictions are loaded once, by default those chosen by its own selection
    rule."""

    run: Run
    _chosen: dict[str, Chosen] = field(default_factory=dict, repr=False, compare=False)
    _views: dict[tuple[str, str], AnsweredRows] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def benchmark(self) -> Benchmark:
        return get_run_benchmark(self.run)

    @property
    def metric(self) -> Metric:
        """The primary metric."""
        return self.benchmark.metrics[0]

    @cached_property
    def scored(self) -> RunPredictions:
        return RunPredictions(self.benchmark, self.run.predictions(), self.run)

    def chosen(self, rule: str = "") -> Chosen:
        """Return the candidate that a selection rule (by default the run's own) chooses for each seed.

        Raises `UnknownName` for an unknown rule, and `BadRun` if the rule cannot be applied to the run."""
        if rule not in self._chosen:
            self._chosen[rule] = self.scored.choose(self._find_rule(rule))
        return self._chosen[rule]

    def _find_rule(self, name: str) -> Rule:
        if not name:
            return self.benchmark.rule(self.run.selection)
        known = load_rules()
        if name not in known:
            raise UnknownName("selection rule", name, known)
        if reason := explain_unavailable(self.scored, known[name]):
            raise BadRun(f"{self.run.path}: the selection rule {name} cannot be applied: {reason}")
        return known[name]

    def rows(self, view: str, rule: str = "") -> AnsweredRows:
        """Return a view's rows with the predictions of the candidates that a selection rule chooses.

        Raises `UnknownName` for a view that the benchmark does not have."""
        if view not in self.benchmark.definition.views:
            raise UnknownName(f"view of {self.benchmark.name}", view, self.benchmark.definition.views)
        if (view, rule) not in self._views:
            self._views[view, rule] = self.scored.view(view, self.chosen(rule))
        return self._views[view, rule]

    def sample(self, view: str) -> Sample:
        """Return a view's scores by the primary metric."""
        return self.rows(view).by(self.metric)


Pair = tuple[Side, Side]


def compare(left: Run | Path | str, right: Run | Path | str) -> Comparison:
    """Compare two runs on the same rows: left minus right in ID, OOD and gap, each with a paired 95 % interval.

    `distinguishable` says whether the interval excludes zero; it is None if a run has a single seed, since the interval
    then does not cover training noise. An undefined difference is a `NotAvailable` with the reason. Raises
    `FarshiftError` for runs with different entry identities.

    >>> import farshift as fs
    >>> names = "quadratic-mlp", "quadratic-mlp-weight-decay"
    >>> plain, decayed = (fs.baseline("modadd97/xi35", name) for name in names)
    >>> difference = fs.compare(plain, decayed)
    >>> round(difference.ood.value, 2), difference.ood.distinguishable
    (-1.0, True)
    """
    return _compare_pair(*_read_pair(left, right))


def _read_pair(left: Run | Path | str, right: Run | Path | str) -> Pair:
    """Read both runs; raises `FarshiftError` unless they have the same entry identity."""
    a, b = read_related_runs([left, right])
    return Side(a), Side(b)


def read_runs(runs: Runs) -> list[Run]:
    """Read those of the runs that are folders."""
    return [run if isinstance(run, Run) else read_run(run) for run in runs]


def read_related_runs(runs: Runs) -> list[Run]:
    """Read the runs; raises `FarshiftError` unless they all have the same entry identity."""
    read = read_runs(runs)
    for other in read[1:]:
        if compute_entry_identity(other) != compute_entry_identity(read[0]):
            raise FarshiftError(f"these runs cannot be compared: {describe_run(read[0])}, {describe_run(other)}")
    return read


def describe_run(run: Run) -> str:
    """Describe a run's benchmark and protocol, for messages about runs that cannot be compared."""
    steps = "" if run.steps is None else f", {run.steps} steps"
    limit = run.card.model.limit
    trial = "" if limit is None else f", a trial on {format_count(limit, 'row')} of each part (--limit)"
    return (
        f"{run.model} is on {run.benchmark} (budget {run.budget}{steps}, selection rule {run.selection}, "
        f"identity {run.entry_identity[:12]}..{trial})"
    )


def _compare_pair(left: Side, right: Side) -> Comparison:
    x, y = ((side.sample("id"), side.sample("ood")) for side in (left, right))
    clusters = describe_clusters({"ID": x[0].clustering, "OOD": x[1].clustering})
    single = _has_single_seed((left, right))
    over = "rows only (a single seed: no training noise)" if single else "rows and the training seeds of both"
    if not single and any(side.run.card.model.deterministic for side in (left, right)):
        over = "rows and training seeds (a deterministic model has no training noise)"
    return Comparison(
        left.run.benchmark,
        left.run.model,
        right.run.model,
        {"left": len(left.run.seeds), "right": len(right.run.seeds)},
        {
            "id": _judge_difference(estimate_paired_difference(x[0], y[0]), single),
            "ood": _judge_difference(estimate_paired_difference(x[1], y[1]), single),
            "gap": _judge_difference(estimate_gap_difference(x, y), single),
        },
        f"left minus right; {LEVEL:.0%} t interval over paired {over}{clusters}",
    )


def _has_single_seed(pair: Pair) -> bool:
    """Return whether one of the runs has a single seed and training noise, which intervals then do not cover."""
    return any(len(side.run.seeds) == 1 and not side.run.card.model.deterministic for side in pair)


def _judge_difference(estimate: Estimate, single: bool) -> Difference | NotAvailable:
    """Judge whether a difference's interval excludes zero; unknown if it does not cover training noise (`single`)."""
    record = {name: value for name, value in estimate.to_dict().items() if name not in ("per_seed", "seeds")}
    if not estimate.defined:
        return NotAvailable(record[KEY])
    value, low, high = (record[name] for name in ("value", "low", "high"))
    # Judged by the rounded ends, so that it agrees with the record.
    return Difference(value, low, high, None if single else not low <= 0 <= high, record)


@dataclass(frozen=True)
class Difference(Interval):
    """Left minus right, with its paired 95 % interval. distinguishable: whether the interval excludes zero; None if a
    run has a single seed. detail: the estimate as JSON, with its standard errors and number of rows."""

    distinguishable: bool | None
    detail: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {**self.detail, "distinguishable": self.distinguishable}

    def __str__(self) -> str:
        words = {True: "distinguishable", False: "not distinguishable", None: "more seeds needed"}
        return f"{self.value:+.3f} [{self.low:+.3f}, {self.high:+.3f}], {words[self.distinguishable]}"


@dataclass(frozen=True, repr=False)
class Comparison(Record):
    """Two runs on one benchmark compared by its primary metric, left minus right. seeds: the number of seeds of `left`
    and `right`. interval: a description of the intervals."""

    benchmark: str
    left: str
    right: str
    seeds: Mapping[str, int]
    difference: Mapping[str, Difference | NotAvailable]
    interval: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        record = super().to_dict()
        written = {name: {"distinguishable": None} | item for name, item in record["difference"].items()}
        return record | {"difference": written}

    @property
    def id(self) -> Difference | NotAvailable:
        return self.difference["id"]

    @property
    def ood(self) -> Difference | NotAvailable:
        return self.difference["ood"]

    @property
    def gap(self) -> Difference | NotAvailable:
        return self.difference["gap"]

    def __repr__(self) -> str:
        lines = [f"{name:>5}  {_format_difference(item)}" for name, item in self.difference.items()]
        return "\n".join([f"{self.left} minus {self.right} on {self.benchmark}", *lines])

    def _repr_html_(self) -> str:
        rows = [{"score": name, "difference": _format_difference(item)} for name, item in self.difference.items()]
        return render_table(rows, f"{self.left} minus {self.right} on {self.benchmark}", self.interval)

    def to_pandas(self) -> pd.DataFrame:
        """Return a data frame with one row each for ID, OOD and gap. Raises `MissingExtra` without pandas."""
        named = {"benchmark": self.benchmark, "left": self.left, "right": self.right}
        return to_data_frame([named | {"score": name} | item for name, item in self.to_dict()["difference"].items()])


def _format_difference(difference: Difference | NotAvailable) -> str:
    return f"n/a ({difference.reason})" if isinstance(difference, NotAvailable) else str(difference)


VIEWS = ("id", "ood")


def compare_in_full(left: Run | Path | str, right: Run | Path | str) -> dict[str, Any]:
    """Return the result of `compare` as plain JSON, and in addition

    - `metric`, `better`, `bounds`, `severity_unit`: the metric, and the unit of severity;
    - `test`: for ID and OOD the exact paired test, with its name and p-value, and the t test
      (statistics/paired_test.py); only the t test for a metric that is not a mean over rows;
    - `severity`: the difference at each severity (`view`, `from`, `to`);
    - `groups`: the difference in each OOD group, with its p-value and the p-value adjusted for all groups (Holm
      1979)."""
    pair = _read_pair(left, right)
    benchmark, metric = pair[0].benchmark, pair[0].metric
    tests = {view: compare_rows(*(side.sample(view) for side in pair)) for view in VIEWS}
    return _compare_pair(*pair).to_dict() | {
        "metric": metric.signature,
        "better": metric.better,
        "bounds": list(metric.bounds) if has_finite_ends(metric.bounds) else None,
        "severity_unit": get_severity_unit(benchmark),
        "test": {view: {name: test[name] for name in test if name != "difference"} for view, test in tests.items()},
        "severity": _compare_by_severity(pair),
        "groups": _compare_by_group(pair),
    }


def _sample_rows(pair: Pair, view: str, rows: NDArray[Any]) -> list[Sample]:
    """Return the scores of both sides on some rows of a view, by the primary metric."""
    return [side.rows(view).select(rows).by(side.metric) for side in pair]


def _compare_by_severity(pair: Pair) -> list[dict[str, Any]]:
    left, single = pair[0], _has_single_seed(pair)
    curve = compute_severity_curve(left.scored, {view: left.rows(view) for view in VIEWS}, left.metric)
    differences = []
    for point in curve:
        severity = left.benchmark.view(point.view)[0].row_metadata["severity"]
        rows = (severity >= point.first) & (severity <= point.last)
        difference = estimate_paired_difference(*_sample_rows(pair, point.view, rows))
        if difference.defined:
            location = {"view": point.view, "from": point.first, "to": point.last}
            differences.append(location | _judge_difference(difference, single).to_dict())
    return differences


def _compare_by_group(pair: Pair) -> dict[str, dict[str, Any]]:
    groups = pair[0].benchmark.view("ood")[0].row_metadata.get("group")
    names = [] if groups is None else sorted(set(groups.tolist()))
    if groups is None or not 2 <= len(names) <= MAX_GROUPS:
        return {}
    differences, p_values = {}, {}
    for name in names:
        samples = _sample_rows(pair, "ood", groups == name)
        difference = _judge_difference(estimate_paired_difference(*samples), _has_single_seed(pair))
        differences[str(name)] = {"distinguishable": None} | difference.to_dict()
        if test := compare_rows(*samples)["t"]:
            p_values[str(name)] = test["p"]
    for (name, p), adjusted in zip(p_values.items(), adjust_by_holm([*p_values.values()]), strict=True):
        differences[name] |= {"p": float(f"{p:.6g}"), "p_holm": float(f"{adjusted:.6g}")}
    return differences


def find_leaders(runs: Runs) -> list[bool]:
    """Return for each run whether it has the best OOD score among the runs with its entry identity, or does not differ
    significantly from the best.

    The test is max-t over all pairs at 5 %, on the joint cluster-robust covariance of the scores on the same rows. A
    run that cannot be compared with any other, or whose score has no known variance, gets False."""
    sides = [Side(run) for run in read_runs(runs)]
    by_identity: dict[str, list[int]] = {}
    for index, side in enumerate(sides):
        by_identity.setdefault(compute_entry_identity(side.run), []).append(index)
    leads = [False] * len(sides)
    for identity, indices in by_identity.items():
        samples = {index: sides[index].sample("ood") for index in indices} if len(indices) > 1 else {}
        known = [index for index, sample in samples.items() if isfinite(sample.spread().variance)]
        if len(known) < 2:
            continue
        better = sides[known[0]].metric.better
        joint = estimate_joint_covariance([samples[index] for index in known])
        differs = compute_rank_sets(joint, better, LEVEL, f"leaders/{identity}").differs
        first = int(np.argmin(joint.values) if better == "lower" else np.argmax(joint.values))
        for number, index in enumerate(known):
            leads[index] = number == first or not differs[first, number]
    return leads
