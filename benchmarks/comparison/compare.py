"""Comparison of two runs on the same rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadRun, FarshiftError, UnknownName
from ...core.listings import render_table, to_data_frame
from ...core.text import format_count
from ..benchmark import Benchmark
from ..metrics import Metric
from ..runs.coverage import read_limit
from ..runs.run import Run, read_run
from ..scoring.answered_rows import AnsweredRows, Chosen, RunPredictions
from ..scoring.apply_selection import explain_unavailable
from ..scoring.score import compute_entry_identity, get_run_benchmark
from ..selection import Rule, load_rules
from ..statistics.clusters import describe_clusters
from ..statistics.interval import (
    Estimate,
    NotAvailable,
    Record,
    estimate_gap_difference,
    estimate_paired_difference,
)
from ..statistics.sample import Sample
from ..statistics.variance_estimate import LEVEL

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
    return Comparison.from_dict(compare_sides(*read_sides(left, right)))


def read_sides(left: Run | Path | str, right: Run | Path | str) -> tuple[Side, Side]:
    """Read both runs; raises `FarshiftError` unless they have the same entry identity."""
    a, b = read_related_runs([left, right])
    x, y = (read_limit(run.card.model.extra) for run in (a, b))
    if x != y:
        coverage = " and ".join(
            "all rows" if limit is None else f"{format_count(limit, 'row')} of each part" for limit in (x, y)
        )
        raise FarshiftError(f"these runs cannot be compared: they were evaluated on {coverage} (--limit)")
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


def compare_sides(left: Side, right: Side) -> dict[str, Any]:
    """Return the result of `compare` as plain JSON, for runs that are already loaded."""
    x, y = ((side.sample("id"), side.sample("ood")) for side in (left, right))
    clusters = describe_clusters({"ID": x[0].clustering, "OOD": x[1].clustering})
    single = has_single_seed(left, right)
    over = "rows only (a single seed: no training noise)" if single else "rows and the training seeds of both"
    if not single and any(side.run.card.model.deterministic for side in (left, right)):
        over = "rows and training seeds (a deterministic model has no training noise)"
    return {
        "benchmark": left.run.benchmark,
        "left": left.run.model,
        "right": right.run.model,
        "seeds": {"left": len(left.run.seeds), "right": len(right.run.seeds)},
        "difference": {
            "id": judge_difference(estimate_paired_difference(x[0], y[0]), single),
            "ood": judge_difference(estimate_paired_difference(x[1], y[1]), single),
            "gap": judge_difference(estimate_gap_difference(x, y), single),
        },
        "interval": f"left minus right; {LEVEL:.0%} t interval over paired {over}{clusters}",
    }


def has_single_seed(left: Side, right: Side) -> bool:
    """Return whether one of the runs has a single seed and training noise, which intervals then do not cover."""
    return any(len(side.run.seeds) == 1 and not side.run.card.model.deterministic for side in (left, right))


def judge_difference(estimate: Estimate, single: bool) -> dict[str, Any]:
    """Return a difference as a record, with `distinguishable`: whether its interval excludes zero.

    It is None if there is no interval, or if a side has a single seed (`single`), so that the interval does not cover
    training noise."""
    record = estimate.to_dict()
    known = estimate.defined and not single
    # Computed from the rounded ends, so that it agrees with the record.
    record["distinguishable"] = not record["low"] <= 0 <= record["high"] if known else None
    return {name: value for name, value in record.items() if name not in ("per_seed", "seeds")}


def describe_run(run: Run) -> str:
    """Describe a run's benchmark and protocol, for messages about runs that cannot be compared."""
    return (
        f"{run.model} is on {run.benchmark} (budget {run.budget}, selection rule {run.selection}, "
        f"identity {run.entry_identity[:12]}..)"
    )


def measure_run_view(run: Run, view: str) -> Sample:
    """Return a view's scores of a run by the primary metric, for the candidates that the run's own rule chooses."""
    return Side(run).sample(view)


@dataclass(frozen=True)
class Difference:
    """Left minus right, with its paired 95 % interval. distinguishable: whether the interval excludes zero; None if a
    run has a single seed. detail: the rest of the record, such as the standard errors and the number of rows."""

    value: float
    low: float
    high: float
    distinguishable: bool | None
    detail: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Difference:
        """What `judge_difference` returned."""
        return cls(record["value"], record["low"], record["high"], record["distinguishable"], dict(record))

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return dict(self.detail)

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
