"""Scores of different benchmarks on one scale: 0 is chance, 1 is the best that can be.

    normalised = (value - chance) / (best - chance)

Both ends are the task's and the metric's own, and never what somebody else has scored: who enters or leaves moves
nobody's number. Below chance it is negative, and is not cut off. A loss, whose best is below chance, turns round.
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
    """What guessing scores, and what nobody can better."""

    chance: float
    best: float

    def __post_init__(self) -> None:
        if not (isfinite(self.chance) and isfinite(self.best)) or self.chance == self.best:
            raise FarshiftError(
                f"a scale from {self.chance:g} to {self.best:g} normalises nothing: give two finite ends"
            )

    @property
    def span(self) -> float:
        return self.best - self.chance


@dataclass(frozen=True)
class Summary:
    """What an aggregate needs to know of an entry on one benchmark: its value with each seed, and the part of the
    variance of their mean that comes from the draw of rows and that its seeds share (shared_rows.py)."""

    per_seed: tuple[float, ...]
    rows: VarianceEstimate

    @property
    def value(self) -> float:
        return compute_average(self.per_seed)

    @property
    def seeds(self) -> VarianceEstimate:
        """The part of the variance that comes from training seeds; none that is known of a single one."""
        return estimate_seed_variance(list(self.per_seed)) or VarianceEstimate(0.0, 1)

    @property
    def spread(self) -> VarianceEstimate:
        """Both parts."""
        return add_variances((self.rows, self.seeds))

    @property
    def defined(self) -> bool:
        """Whether there is a value, and a variance of it."""
        return isfinite(self.value) and isfinite(self.rows.variance)


def summarise_sample(sample: Sample | Summary) -> Summary:
    """What an aggregate needs to know of a sample."""
    return sample if isinstance(sample, Summary) else Summary(tuple(sample.per_seed), estimate_shared_variance(sample))


def normalise_summary(summary: Summary, scale: Scale) -> Summary:
    """The same on its benchmark's scale, seeds in rising order: in which order they were trained never shows."""
    values = sorted((value - scale.chance) / scale.span for value in summary.per_seed)
    return Summary(tuple(values), VarianceEstimate(summary.rows.variance / scale.span**2, summary.rows.df))


def get_scale(scales: Mapping[str, Scale], benchmark: str) -> Scale:
    """The scale of a benchmark; refuses one that has none."""
    if benchmark not in scales:
        raise FarshiftError(f"{benchmark} has no level of chance: leave it out of the aggregate, or give its scale")
    return scales[benchmark]


def normalise_entry(samples: Mapping[str, Sample | Summary], scales: Mapping[str, Scale]) -> list[Summary]:
    """An entry's normalised summaries of the benchmarks that `scales` names, in their order."""
    return [normalise_summary(summarise_sample(samples[name]), scale) for name, scale in scales.items()]
