"""Aggregates over benchmarks: the mean normalised score and the interquartile mean (IQM), each with its interval.

    mean = 1/B sum_k (mean over seeds of the normalised score on benchmark k)
    IQM  = the mean of the middle half of all benchmark x seed scores, with equal weight per benchmark

(Agarwal et al., NeurIPS 2021). No value depends on the other entries, as neither ranks nor wins are used. An entry that
lacks a benchmark has no aggregate over the others, which may be the easy ones: it is listed separately with its missing
benchmarks.

The variance is that of the hierarchical bootstrap (hierarchy.py): in closed form for the mean, by resampling for the
IQM. Intervals are t intervals with Satterthwaite's degrees of freedom. With a single seed on a benchmark, training
noise on it is not covered. Benchmarks are assumed to have disjoint rows: the variance is underestimated if two of them
share rows.
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
"""Scores by benchmark and entry. An entry that lacks a benchmark has no key there."""


@dataclass(frozen=True)
class Aggregate:
    """The aggregate of an entry with scores on all benchmarks. `by_benchmark`: its normalised scores; `seeds`: the
    minimum number of seeds over benchmarks."""

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
    """An entry without an aggregate, since it lacks some benchmarks; it has scores on `has` benchmarks."""

    entry: str
    missing: tuple[str, ...]
    has: int

    def to_dict(self) -> dict[str, Any]:
        return {"entry": self.entry, "missing": list(self.missing), "has": self.has}


@dataclass(frozen=True)
class Aggregates:
    """The aggregates of all entries. `rows`: by mean, best first (the order is not a ranking); `incomplete`: by
    name."""

    over: tuple[str, ...]
    rows: list[Aggregate]
    incomplete: list[Incomplete]

    @property
    def interval(self) -> str:
        """A description of the intervals."""
        if any(row.seeds == 1 for row in self.rows):
            over = f"rows of these {len(self.over)} benchmarks, and seeds if there are several"
        else:
            over = f"rows and training seeds of these {len(self.over)} fixed benchmarks"
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
    """Compute the aggregates of every entry over all benchmarks in `scores`.

    Raises `FarshiftError` if there are no benchmarks, or if one has no scale."""
    names = sorted(scores)
    if not names:
        raise FarshiftError("an aggregate requires at least one benchmark")
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
