"""Normalisation of scores from different benchmarks to one scale: 0 is chance, 1 is the best possible score.

    normalised = (value - chance) / (best - chance)

Both ends are properties of the task and the metric and do not depend on other entries. Scores below chance are negative
and are not clipped. Losses, whose best value is below chance, are reversed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from ...core.errors import FarshiftError
from .confidence_interval import add_variances
from .sample import Sample
from .shared_rows import estimate_shared_variance
from .variance_estimate import VarianceEstimate, compute_average, estimate_seed_variance


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
    component of their mean that comes from rows and is shared by its seeds (shared_rows.py)."""

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
    def spread(self) -> VarianceEstimate:
        """The variance from rows and seeds."""
        return add_variances((self.rows, self.seeds))

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


def get_scale(scales: Mapping[str, Scale], benchmark: str) -> Scale:
    """Return the scale of a benchmark; raises `FarshiftError` if it has none."""
    if benchmark not in scales:
        raise FarshiftError(f"{benchmark} has no chance level: omit it from the aggregate, or give its scale")
    return scales[benchmark]


def normalise_entry(samples: Mapping[str, Sample | Summary], scales: Mapping[str, Scale]) -> list[Summary]:
    """Return an entry's normalised summaries on the benchmarks in `scales`, in their order."""
    return [normalise_summary(summarise_sample(samples[name]), scale) for name, scale in scales.items()]
