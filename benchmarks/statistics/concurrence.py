"""Rank agreement of two benchmarks: Kendall's tau-b of the entries' scores, with its interval.

    tau_b = sum_ij sign(x_i - x_j) sign(y_i - y_j) / sqrt(sum_ij sign(x_i - x_j)^2 sum_ij sign(y_i - y_j)^2)

(Kendall, Biometrika 1945). It is 1 if both order the entries identically, and -1 if one order is the reverse of the
other.

The interval treats the entries as a random sample from a population of entries, and does not extend to entries of
another kind. tau is that of the *measured* scores: noise from rows and seeds attenuates it towards 0. The interval is
the percentile bootstrap over entries, extended to at least the interval of Fieller, Hartley and Pearson (Biometrika
1957), arctanh(tau) +- 1.96 sqrt(0.437 / (n - 4)), with one concordant and one discordant pair added: the bootstrap
alone has no width for entries in identical order, and in simulations covers only 84 % for seven entries at tau = 0.8.
docs/statistics.md has the coverage of the combination.

Fewer than seven entries can too easily be ordered identically by chance: no tau is reported then, only the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import atanh, nan, sqrt, tanh
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .interval import NotAvailable
from .variance_estimate import LEVEL, make_generator

MORE_THAN = 6
"""tau is only reported for more entries than this."""

DRAWS = 2000


@dataclass(frozen=True)
class Concurrence:
    """Kendall's tau-b of `entries` entries on two benchmarks, with a 95 % interval over entries."""

    left: str
    right: str
    entries: int
    tau: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain JSON with six decimals; `n/a` with the reason if there is no tau."""
        named = {"left": self.left, "right": self.right, "entries": self.entries}
        if self.entries <= MORE_THAN:
            return named | NotAvailable(f"{self.entries} common entries: more than {MORE_THAN} needed").to_dict()
        if np.isnan(self.tau):
            return named | NotAvailable("all entries have the same score on one benchmark").to_dict()
        return named | {"tau": round(self.tau, 6), "low": round(self.low, 6), "high": round(self.high, 6)}


def compute_concurrences(scores: Mapping[str, Mapping[str, float]]) -> list[Concurrence]:
    """Compute the concurrence of every pair of benchmarks, from {benchmark: {entry: score}}, over their common entries.

    Higher scores must be better on all benchmarks: negate losses (`Scale` does)."""
    return [compute_concurrence(left, right, scores) for left, right in combinations(sorted(scores), 2)]


def compute_concurrence(left: str, right: str, scores: Mapping[str, Mapping[str, float]]) -> Concurrence:
    """Compute the concurrence of two benchmarks."""
    common = sorted(set(scores[left]) & set(scores[right]))
    x, y = (np.array([scores[name][entry] for entry in common], np.float64) for name in (left, right))
    if len(common) <= MORE_THAN:
        return Concurrence(left, right, len(common), nan, nan, nan)
    return Concurrence(left, right, len(common), *compute_tau_interval(x, y))


def compute_tau_interval(
    x: NDArray[np.float64], y: NDArray[np.float64], draws: int = DRAWS
) -> tuple[float, float, float]:
    """Compute (tau_b, low, high) of the scores of n entries on two benchmarks, shapes (n,); NaN if all are tied on
    one."""
    n = len(x)
    signs = [np.sign(values[:, None] - values) for values in (x, y)]
    tau = float(_compute_resampled_tau(signs, np.ones((1, n)))[0])
    if np.isnan(tau):
        return nan, nan, nan
    counts = make_generator(f"concurrence/{n}").multinomial(n, np.full(n, 1 / n), draws).astype(np.float64)
    resampled = _compute_resampled_tau(signs, counts)
    tail = (1 - LEVEL) / 2
    low, high = (float(end) for end in np.nanquantile(resampled, [tail, 1 - tail]))
    pairs = n * (n - 1) / 2
    centre, reach = atanh(tau * pairs / (pairs + 2)), NormalDist().inv_cdf(1 - tail) * sqrt(0.437 / (n - 4))
    return tau, min(low, tanh(centre - reach)), max(high, tanh(centre + reach))


def _compute_resampled_tau(signs: list[NDArray[np.float64]], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute tau-b of each resample (draws,), in which the n entries occur `counts` (draws, n) times: copies of an
    entry are tied. NaN if all are tied."""
    x, y = signs
    agree, by_x, by_y = (((counts @ pairs) * counts).sum(axis=1) for pairs in (x * y, x * x, y * y))
    untied = np.sqrt(by_x * by_y)
    taus: NDArray[np.float64] = np.full(len(counts), nan)
    np.divide(agree, untied, out=taus, where=untied > 0)
    return taus
