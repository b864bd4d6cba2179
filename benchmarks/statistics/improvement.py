"""Two named entries over many benchmarks: how much better is one, and how often is it better at all?

- difference: the mean over benchmarks of the paired difference of normalised scores.
- probability of improvement: the probability that a run of one scores above a run of the other on a benchmark drawn at
  random, ties one half (Agarwal et al., NeurIPS 2021):

    P = 1/B sum_k 1/(S T) sum_st [x_ks > y_kt] + [x_ks = y_kt] / 2

It is of these two entries: no third one moves it, as it would a win rate. Its variance on a benchmark is

- by seeds, that of the seeds' placements (DeLong, DeLong and Clarke-Pearson, Biometrics 1988);
- by rows, that of P when all x - y of the benchmark move together by the noise of its paired rows.

To both entries' seeds, of all benchmarks together, a placement at 0 and one at 1 are added (jackknife.ends), so that
three seeds that are all better do not make a certainty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError, some_of
from .jackknife import ends
from .margin import Margin, added, margin
from .normalised import Scale, Summary, normalised, scale_of, summary
from .sample import Sample
from .shared_rows import shared_difference
from .spread import Spread, average, seed_spread

Found = Mapping[str, Sample | Summary]

_NOISE = np.array([NormalDist().inv_cdf((step + 0.5) / 400) for step in range(400)])
"""A standard normal, as its quantiles."""


@dataclass(frozen=True)
class Improvement:
    """What one entry has over another: `difference` in normalised score, and `probability` of improvement."""

    over: tuple[str, ...]
    difference: Margin
    probability: Margin

    def to_dict(self) -> dict[str, Any]:
        return {
            "over": list(self.over),
            "difference": self.difference.to_dict(),
            "probability": self.probability.to_dict(),
        }


def improvement(left: Found, right: Found, scales: Mapping[str, Scale]) -> Improvement:
    """Left over right, on benchmarks taken as fixed. Refuses entries that do not have the same benchmarks.

    Rows are paired where both are samples of rows; two summaries are taken as of different rows, which is wide."""
    names = tuple(sorted(left))
    if not names or set(left) != set(right):
        apart = sorted(set(left) ^ set(right))
        raise FarshiftError(f"only entries with the same benchmarks are compared: {some_of(apart) or 'there are none'}")
    values, chances, by_value, by_chance, counts = [], [], [], [], np.zeros(2)
    for name in names:
        scale = scale_of(scales, name)
        x, y = (normalised(summary(found[name]), scale) for found in (left, right))
        rows = _paired_rows(left[name], right[name], scale)
        values.append(x.value - y.value)
        by_value += [rows, x.seeds, y.seeds]
        counts += len(x.per_seed), len(y.per_seed)
        one, spread = _chance(np.array(x.per_seed), np.array(y.per_seed), rows)
        chances.append(one)
        by_chance += spread
    chance = average(chances)
    unsure = [ends(chance, count, len(names)) for count in counts]
    return Improvement(
        names,
        margin(average(values), _over(by_value, len(names))),
        margin(chance, _over([*by_chance, *unsure], len(names)), (0.0, 1.0)),
    )


def _over(parts: list[Spread], benchmarks: int) -> Spread:
    whole = added(parts)
    return Spread(whole.variance / benchmarks**2, whole.df)


def _paired_rows(left: Sample | Summary, right: Sample | Summary, scale: Scale) -> Spread:
    """The part of the variance of the normalised difference that comes from the draw of rows."""
    if isinstance(left, Summary) or isinstance(right, Summary):
        found = added((summary(left).rows, summary(right).rows))
    else:
        found = shared_difference(left, right)
    return Spread(found.variance / scale.span**2, found.df)


def _chance(x: NDArray[np.float64], y: NDArray[np.float64], rows: Spread) -> tuple[float, list[Spread]]:
    """The probability of improvement on one benchmark, from scores (S,) and (T,), and the parts of its variance."""
    apart = x[:, None] - y
    better = (apart > 0) + (apart == 0) / 2
    placements = [better.mean(axis=axis).tolist() for axis in (0, 1)]
    seeds = [seed_spread(side) or Spread(0.0, 1) for side in placements]
    moved = apart + sqrt(rows.variance) * _NOISE[:, None, None]
    return float(better.mean()), [*seeds, Spread(float((moved > 0).mean(axis=(1, 2)).var()), rows.df)]
