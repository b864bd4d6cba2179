"""One number over many benchmarks: the mean normalised score, and the interquartile mean, each with its interval.

    mean = 1/B sum_k (mean over seeds of the normalised score on benchmark k)
    IQM  = the mean of the middle half of all benchmark x seed scores, each benchmark counting alike

(Agarwal et al., NeurIPS 2021). No number depends on who else has entered: there are no ranks or wins in it. An entry
that lacks a benchmark has no mean over the others, which may be the easy ones: it is listed apart, with what it lacks.

The variance is the hierarchical bootstrap's (hierarchy.py): of the mean in closed form, of the IQM by draws. Intervals
are t intervals with Satterthwaite's degrees of freedom. A single seed on a benchmark tells nothing of training noise
there. Benchmarks are taken as measured on rows of their own: two that share rows are noisier together than is counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.errors import FarshiftError
from .confidence_interval import LEVEL, ConfidenceInterval, make_confidence_interval
from .hierarchy import DRAWS, bootstrap_hierarchy, estimate_iqm_variance, estimate_mean_variance
from .iqm import compute_interquartile_mean
from .normalised import Scale, Summary, get_scale, normalise_entry, summarise_sample
from .sample import Sample
from .variance_estimate import compute_average

Scores = Mapping[str, Mapping[str, Sample | Summary]]
"""By benchmark, by entry: what the entry scored there. A benchmark that an entry lacks has no such key."""


@dataclass(frozen=True)
class Aggregate:
    """An entry that has every benchmark. `by_benchmark`: its normalised scores; `seeds`: the fewest on a benchmark."""

    entry: str
    mean: ConfidenceInterval
    iqm: ConfidenceInterval
    by_benchmark: dict[str, float]
    seeds: int

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals."""
        return {
            "entry": self.entry,
            "mean": self.mean.to_dict(),
            "iqm": self.iqm.to_dict(),
            "by_benchmark": {name: round(value, 6) + 0.0 for name, value in self.by_benchmark.items()},
            "seeds": self.seeds,
        }


@dataclass(frozen=True)
class Incomplete:
    """An entry that lacks benchmarks, and so has no aggregate; `has` of them it has."""

    entry: str
    missing: tuple[str, ...]
    has: int

    def to_dict(self) -> dict[str, Any]:
        return {"entry": self.entry, "missing": list(self.missing), "has": self.has}


@dataclass(frozen=True)
class Aggregates:
    """The aggregates of a table. `rows`: by mean, best first (the order is not a ranking); `incomplete`: by name."""

    over: tuple[str, ...]
    rows: list[Aggregate]
    incomplete: list[Incomplete]

    @property
    def interval(self) -> str:
        """What the intervals cover, in words."""
        if any(row.seeds == 1 for row in self.rows):
            over = f"rows of these {len(self.over)} benchmarks, and seeds where there is more than one"
        else:
            over = f"rows and training seeds of these {len(self.over)} benchmarks, and no others"
        return f"[low, high]: {LEVEL:.0%} t interval over {over}, by a hierarchical bootstrap"

    def to_dict(self) -> dict[str, Any]:
        return {
            "over": list(self.over),
            "benchmarks": "fixed",
            "rows": [row.to_dict() for row in self.rows],
            "incomplete": [row.to_dict() for row in self.incomplete],
            "interval": self.interval,
        }


def aggregate(
    scores: Scores,
    scales: Mapping[str, Scale],
    draws: int = DRAWS,
) -> Aggregates:
    """The aggregates of every entry over all benchmarks in `scores`.

    Raises `FarshiftError` where there is no benchmark, or one without a scale."""
    names = sorted(scores)
    if not names:
        raise FarshiftError("an aggregate needs a benchmark")
    by_name = {name: get_scale(scales, name) for name in names}
    known = {name: {entry: summarise_sample(sample) for entry, sample in scores[name].items()} for name in names}
    rows, incomplete = [], []
    for entry in sorted({entry for by_entry in known.values() for entry in by_entry}):
        defined_samples = {
            name: known[name][entry] for name in names if entry in known[name] and known[name][entry].defined
        }
        if missing := tuple(name for name in names if name not in defined_samples):
            incomplete.append(Incomplete(entry, missing, len(defined_samples)))
        else:
            scaled = normalise_entry(defined_samples, by_name)
            rows.append(_aggregate_entry(entry, names, scaled, draws))
    return Aggregates(tuple(names), sorted(rows, key=lambda row: -row.mean.value), incomplete)


def _aggregate_entry(entry: str, names: list[str], summaries: list[Summary], draws: int) -> Aggregate:
    bootstrap = bootstrap_hierarchy(names, summaries, draws)
    values = [summary.value for summary in summaries]
    middle = float(compute_interquartile_mean(bootstrap.values, bootstrap.weights))
    return Aggregate(
        entry,
        make_confidence_interval(compute_average(values), estimate_mean_variance(summaries)),
        make_confidence_interval(middle, estimate_iqm_variance(bootstrap, summaries)),
        dict(zip(names, values, strict=True)),
        min(len(summary.per_seed) for summary in summaries),
    )
