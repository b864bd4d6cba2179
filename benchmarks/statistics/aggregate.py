"""Aggregates over benchmarks: the mean normalised score and the interquartile mean (IQM), each with its interval.

Scores are normalised to one scale, 0 for chance and 1 for the best possible score:

    normalised = (value - chance) / (best - chance)

Both ends are properties of the task and the metric and do not depend on other entries. Scores below chance are negative
and are not clipped. Losses, whose best value is below chance, are reversed.

    mean = 1/B sum_k (mean over seeds of the normalised score on benchmark k)
    IQM  = the mean of the middle half of all benchmark x seed scores, with equal weight per benchmark

(Agarwal et al., NeurIPS 2021, whose library only trims whole scores; here a score across a cut counts by its share
inside, with the same result if the number of scores is divisible by four). The IQM is less sensitive to outliers than
the mean, and statistically more efficient than the median. No value depends on the other entries, as neither ranks nor
wins are used. An entry that lacks a benchmark has no aggregate over the others, which may be the easy ones: it is
listed separately with its missing benchmarks.

The variance is that of a hierarchical bootstrap: in closed form for the mean, by resampling for the IQM. Benchmarks are
fixed. Within each, training seeds are resampled, and row noise shifts all its scores together: it is drawn from a
normal distribution with the cluster-robust (or jackknife) variance of the mean over seeds, which is the limit of
resampling rows or clusters. For n seeds, n - 1 are drawn with replacement instead of n, so that the bootstrap variance
of a mean is the unbiased s^2 / n, which matters for n = 3 (McCarthy and Snowden 1985; Rao and Wu, JASA 1988). Draws are
seeded by the benchmark's name, so they do not depend on other entries or on the order of benchmarks.

Intervals are t intervals with Satterthwaite's degrees of freedom. With a single seed on a benchmark, training noise on
it is not covered. Benchmarks are assumed to have disjoint rows: the variance is underestimated if two of them share
rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from .interval import ConfidenceInterval, Record, make_confidence_interval
from .sample import Sample, estimate_shared_variance
from .variance_estimate import (
    LEVEL,
    VarianceEstimate,
    add_variances,
    compute_average,
    estimate_seed_variance,
    make_generator,
)

DRAWS = 2000

CUT = 0.25
"""The share of the weight that the interquartile mean trims at each end."""


@dataclass(frozen=True)
class Scale:
    """The score of guessing, and the best possible score."""

    chance: float
    best: float

    def __post_init__(self) -> None:
        if not (isfinite(self.chance) and isfinite(self.best)) or self.chance == self.best:
            raise FarshiftError(f"invalid scale from {self.chance:g} to {self.best:g}: give two different, finite ends")

    @property
    def span(self) -> float:
        return self.best - self.chance


@dataclass(frozen=True)
class Summary:
    """An entry's results on one benchmark as needed for an aggregate: its value with each seed, and the variance
    component of their mean that comes from rows and is shared by its seeds."""

    per_seed: tuple[float, ...]
    rows: VarianceEstimate

    @property
    def value(self) -> float:
        return compute_average(self.per_seed)

    @property
    def seeds(self) -> VarianceEstimate:
        """The variance component of training seeds; unknown for a single seed."""
        return estimate_seed_variance(list(self.per_seed)) or VarianceEstimate(0.0, 1)

    @property
    def defined(self) -> bool:
        """Whether there is a value with a variance."""
        return isfinite(self.value) and isfinite(self.rows.variance)


def summarise_sample(sample: Sample | Summary) -> Summary:
    """Summarise a sample for an aggregate."""
    return sample if isinstance(sample, Summary) else Summary(tuple(sample.per_seed), estimate_shared_variance(sample))


def normalise_summary(summary: Summary, scale: Scale) -> Summary:
    """Normalise a summary to its benchmark's scale, seeds sorted by value, so that their order has no effect."""
    values = sorted((value - scale.chance) / scale.span for value in summary.per_seed)
    return Summary(tuple(values), VarianceEstimate(summary.rows.variance / scale.span**2, summary.rows.df))


Scores = Mapping[str, Mapping[str, Sample | Summary]]
"""Scores by benchmark and entry. An entry that lacks a benchmark has no key there."""


@dataclass(frozen=True)
class Aggregate(Record):
    """The aggregate of an entry with scores on all benchmarks. `by_benchmark`: its normalised scores; `seeds`: the
    minimum number of seeds over benchmarks."""

    entry: str
    mean: ConfidenceInterval
    iqm: ConfidenceInterval
    by_benchmark: dict[str, float]
    seeds: int

    DIGITS: ClassVar = 6


@dataclass(frozen=True)
class Incomplete(Record):
    """An entry without an aggregate, since it lacks some benchmarks; it has scores on `has` benchmarks."""

    entry: str
    missing: tuple[str, ...]
    has: int


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


def aggregate(scores: Scores, scales: Mapping[str, Scale], draws: int = DRAWS) -> Aggregates:
    """Compute the aggregates of every entry over all benchmarks in `scores`.

    Raises `FarshiftError` if there are no benchmarks, or if one has no scale."""
    names = sorted(scores)
    if not names:
        raise FarshiftError("an aggregate requires at least one benchmark")
    for name in names:
        if name not in scales:
            raise FarshiftError(f"{name} has no chance level: omit it from the aggregate, or give its scale")
    known = {name: {entry: summarise_sample(sample) for entry, sample in scores[name].items()} for name in names}
    rows, incomplete = [], []
    for entry in sorted({entry for by_entry in known.values() for entry in by_entry}):
        defined = {name: by_entry[entry] for name, by_entry in known.items() if entry in by_entry}
        defined = {name: summary for name, summary in defined.items() if summary.defined}
        if missing := tuple(name for name in names if name not in defined):
            incomplete.append(Incomplete(entry, missing, len(defined)))
        else:
            summaries = [normalise_summary(defined[name], scales[name]) for name in names]
            rows.append(_aggregate_entry(entry, names, summaries, draws))
    return Aggregates(tuple(names), sorted(rows, key=lambda row: -row.mean.value), incomplete)


def _aggregate_entry(entry: str, names: list[str], summaries: list[Summary], draws: int) -> Aggregate:
    values = [summary.value for summary in summaries]
    mean_variance = estimate_weighted_variance(summaries, [1 / len(names)] * len(names))
    return Aggregate(
        entry,
        make_confidence_interval(compute_average(values), mean_variance),
        estimate_interquartile_mean(names, summaries, draws),
        dict(zip(names, values, strict=True)),
        min(len(summary.per_seed) for summary in summaries),
    )


def estimate_weighted_variance(summaries: Sequence[Summary], weights: Sequence[float]) -> VarianceEstimate:
    """Estimate the variance of a weighted sum over benchmarks, the limit of the bootstrap for many draws."""
    return add_variances(
        VarianceEstimate(weight**2 * part.variance, part.df)
        for summary, weight in zip(summaries, weights, strict=True)
        for part in (summary.rows, summary.seeds)
    )


def estimate_interquartile_mean(
    names: Sequence[str], summaries: Sequence[Summary], draws: int = DRAWS
) -> ConfidenceInterval:
    """Estimate the interquartile mean of an entry's scores on the named benchmarks, by resampling them `draws` times.
    Degrees of freedom are Satterthwaite's, with each benchmark's average weight over the draws."""
    seeds = [len(summary.per_seed) for summary in summaries]
    values = np.concatenate([summary.per_seed for summary in summaries])
    each = np.repeat([1 / (len(names) * count) for count in seeds], seeds)
    moved, shares = [], []
    for name, summary, count in zip(names, summaries, seeds, strict=True):
        source = make_generator(f"hierarchical bootstrap/benchmark {name}")
        noise = sqrt(summary.rows.variance) * source.standard_normal((draws, 1))
        moved.append(np.array(summary.per_seed) + noise)
        share = np.ones((draws, 1))
        if count > 1:
            share = source.multinomial(count - 1, np.full(count, 1 / count), draws) / (count - 1)
        shares.append(share / len(names))
    drawn = np.concatenate(moved, axis=1)
    weights = compute_iqm_weights(drawn, np.concatenate(shares, axis=1))
    variance = float((weights * drawn).sum(axis=1).var(ddof=1))
    by_benchmark = np.bincount(np.repeat(np.arange(len(names)), seeds), weights.mean(axis=0))
    df = estimate_weighted_variance(summaries, by_benchmark.tolist()).df
    middle = float((compute_iqm_weights(values, each) * values).sum())
    return make_confidence_interval(middle, VarianceEstimate(variance, df))


def compute_iqm_weights(values: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the weight of each score in the interquartile mean, shape (.., n), summing to 1 along the last axis, from
    scores (.., n) and weights (.., n) that sum to 1."""
    order = np.argsort(values, axis=-1, kind="stable")
    mass = np.take_along_axis(weights, order, axis=-1)
    above = np.clip(np.cumsum(mass, axis=-1), CUT, 1 - CUT)
    inside = np.diff(above, axis=-1, prepend=CUT) / (1 - 2 * CUT)
    weights_in_order = np.empty_like(inside)
    np.put_along_axis(weights_in_order, order, inside, axis=-1)
    return weights_in_order
