"""Performance profiles: which share of an entry's benchmark x seed scores lies above tau, for every tau at once.

    profile(tau) = 1/B sum_k (share of the seeds on benchmark k whose normalised score is above tau)

(Dolan and More 2002; Agarwal et al., NeurIPS 2021). It needs no other entry, and shows what a mean hides: whether an
entry is middling everywhere, or good on some benchmarks and at chance on others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .hierarchy import DRAWS, Treated, hierarchy, mean_variance
from .margin import LEVEL
from .normalised import Scale, Summary, on_scales
from .sample import Sample
from .student_t import two_sided

TAUS = tuple(step / 100 for step in range(101))


@dataclass(frozen=True)
class Profile:
    """share (T,) of an entry's scores above each of `taus` (T,), with a 95 % band `low`, `high` for all of them at
    once: the whole curve lies in it in 95 % of studies."""

    taus: tuple[float, ...]
    share: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals."""
        names = ("taus", "share", "low", "high")
        return {name: [round(value, 6) for value in getattr(self, name)] for name in names}


def profile(
    found: Mapping[str, Sample | Summary],
    scales: Mapping[str, Scale],
    benchmarks: Treated = "fixed",
    taus: Sequence[float] = TAUS,
    draws: int = DRAWS,
) -> Profile:
    """The performance profile of an entry over the benchmarks in `found`, all of which have a scale.

    The band reaches as far to either side as the drawn profiles do at most in 95 % of the draws, stretched by what a t
    quantile with the mean's degrees of freedom lies further out than a normal one."""
    names = sorted(found)
    each = on_scales(found, {name: scales[name] for name in names})
    here = hierarchy(names, each, benchmarks, draws)
    steps = np.asarray(taus, np.float64)
    share = _above(here.values[None], here.weights[None], steps)[0]
    furthest = np.abs(_above(here.drawn, here.counts, steps) - share).max(axis=1)
    df = mean_variance(each, benchmarks).df
    reach = np.quantile(furthest, LEVEL) * two_sided(LEVEL, df) / NormalDist().inv_cdf((1 + LEVEL) / 2)
    low, high = np.clip(share - reach, 0, 1), np.clip(share + reach, 0, 1)
    return Profile(tuple(steps.tolist()), *(tuple(line.tolist()) for line in (share, low, high)))


def _above(values: NDArray[np.float64], weights: NDArray[np.float64], taus: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weight above each tau, (draws, T), of scores (draws, N) and their weights: one sum a tau, since a table of
    draws x scores x taus would not fit in memory."""
    return np.stack([(weights * (values > tau)).sum(axis=1) for tau in taus], axis=1)
