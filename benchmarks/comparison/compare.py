"""Comparison of two runs on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ...core.errors import BadRun, FarshiftError, UnknownName
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
from ..statistics.confidence_interval import LEVEL
from ..statistics.interval import Estimate, estimate_gap_difference, estimate_paired_difference
from ..statistics.sample import Sample
from .record import Comparison


@dataclass(frozen=True)
class Side:
    """One of the two compared runs. Its predictions are loaded once, by default those chosen by its own selection
    rule."""

    run: Run

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

    @cached_property
    def _chosen(self) -> dict[str, Chosen]:
        return {}

    @cached_property
    def _views(self) -> dict[tuple[str, str], AnsweredRows]:
        return {}

    def chosen(self, rule: str = "") -> Chosen:
        """Return the candidate that a selection rule (by default the run's own) chooses for each seed.

        Raises `UnknownName` for an unknown rule, and `BadRun` if the rule cannot be applied to the run."""
        if rule not in self._chosen:
            self._chosen[rule] = self.scored.choose(self._rule(rule))
        return self._chosen[rule]

    def _rule(self, name: str) -> Rule:
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
    a, b = (run if isinstance(run, Run) else read_run(run) for run in (left, right))
    if compute_entry_identity(a) != compute_entry_identity(b):
        raise FarshiftError(f"these runs cannot be compared: {describe_run(a)}, {describe_run(b)}")
    x, y = (read_limit(run.card.model.extra) for run in (a, b))
    if x != y:
        coverage = " and ".join(
            "all rows" if limit is None else f"{format_count(limit, 'row')} of each part" for limit in (x, y)
        )
        raise FarshiftError(f"these runs cannot be compared: they were evaluated on {coverage} (--limit)")
    return Side(a), Side(b)


def compare_sides(left: Side, right: Side) -> dict[str, Any]:
    """Return the result of `compare` as plain JSON, for runs that are already loaded."""
    x, y = ((side.sample("id"), side.sample("ood")) for side in (left, right))
    clusters = describe_clusters({"ID": x[0].clustering, "OOD": x[1].clustering})
    single = has_single_seed(left, right)
    over = "rows only (a single seed: no training noise)" if single else "rows and the training seeds of both"
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
    """Return whether one of the runs has a single seed, so that intervals do not cover training noise."""
    return min(len(left.run.seeds), len(right.run.seeds)) == 1


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
