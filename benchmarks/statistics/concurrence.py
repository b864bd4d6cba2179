"""Do two benchmarks order the same entries alike? Kendall's tau-b of the entries' scores, with its interval.

    tau_b = sum_ij sign(x_i - x_j) sign(y_i - y_j) / sqrt(sum_ij sign(x_i - x_j)^2 sum_ij sign(y_i - y_j)^2)

(Kendall, Biometrika 1945). 1 where both order the entries alike, -1 where one turns the other's order round.

The interval is over entries, as drawn from others like them: what tau a study with other such entries could have found.
It says nothing of entries of another sort, and tau is that of the scores *as measured*: noise of rows and seeds in them
draws it towards 0. It is the percentile bootstrap over entries, and reaches at least as far as the interval of Fieller,
Hartley and Pearson (Biometrika 1957), arctanh(tau) +- 1.96 sqrt(0.437 / (n - 4)), with one pair of entries more that
agrees and one that does not: the bootstrap alone gives no width to entries that are ordered quite alike, and in
simulation covers 84 % of the time among seven entries at tau = 0.8. docs/statistics.md has what the two cover together.

Fewer than seven entries can be ordered alike by chance too easily for any of it: then there is only the reason why not.
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

from .confidence_interval import LEVEL
from .not_available import NotAvailable
from .streams import make_generator

MORE_THAN = 6
"""How many entries say nothing yet."""

DRAWS = 2000


@dataclass(frozen=True)
class Concurrence:
    """Kendall's tau-b of `entries` entries on two benchmarks, with its 95 % interval over entries."""

    left: str
    right: str
    entries: int
    tau: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON, six decimals; `n/a` with the reason where there is no tau."""
        named = {"left": self.left, "right": self.right, "entries": self.entries}
        if self.entries <= MORE_THAN:
            return named | NotAvailable(f"{self.entries} common entries: it takes more than {MORE_THAN}").to_dict()
        if np.isnan(self.tau):
            return named | NotAvailable("all entries score alike on one of the two").to_dict()
        return named | {"tau": round(self.tau, 6), "low": round(self.low, 6), "high": round(self.high, 6)}


def compute_concurrences(scores: Mapping[str, Mapping[str, float]], draws: int = DRAWS) -> list[Concurrence]:
    """The concurrence of every pair of benchmarks, from {benchmark: {entry: score}}, over the entries that both have.

    Higher scores are taken as better on all benchmarks alike: turn losses round (`Scale` does)."""
    return [compute_concurrence(left, right, scores, draws) for left, right in combinations(sorted(scores), 2)]


def compute_concurrence(
    left: str, right: str, scores: Mapping[str, Mapping[str, float]], draws: int = DRAWS
) -> Concurrence:
    """The concurrence of two benchmarks."""
    common = sorted(set(scores[left]) & set(scores[right]))
    x, y = (np.array([scores[name][entry] for entry in common], np.float64) for name in (left, right))
    if len(common) <= MORE_THAN:
        return Concurrence(left, right, len(common), nan, nan, nan)
    return Concurrence(left, right, len(common), *compute_tau_interval(x, y, draws))


def tau_b(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """tau_b of two lists of n values, shapes (n,); NaN where all are tied in one."""
    return float(
        _compute_resampled_tau([np.sign(values[:, None] - values) for values in (x, y)], np.ones((1, len(x))))[0]
    )


def compute_tau_interval(
    x: NDArray[np.float64], y: NDArray[np.float64], draws: int = DRAWS
) -> tuple[float, float, float]:
    """(tau_b, low, high) of the scores of n entries on two benchmarks, shapes (n,); NaN where all are tied on one."""
    n = len(x)
    signs = [np.sign(values[:, None] - values) for values in (x, y)]
    tau = tau_b(x, y)
    if np.isnan(tau):
        return nan, nan, nan
    resampled = _compute_resampled_tau(
        signs, make_generator(f"concurrence/{n}").multinomial(n, np.full(n, 1 / n), draws).astype(np.float64)
    )
    tail = (1 - LEVEL) / 2
    low, high = (float(end) for end in np.nanquantile(resampled, [tail, 1 - tail]))
    pairs = n * (n - 1) / 2
    centre, reach = atanh(tau * pairs / (pairs + 2)), NormalDist().inv_cdf(1 - tail) * sqrt(0.437 / (n - 4))
    return tau, min(low, tanh(centre - reach)), max(high, tanh(centre + reach))


def _compute_resampled_tau(signs: list[NDArray[np.float64]], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """tau_b of each resample (draws,), in which the n entries occur `counts` (draws, n) times: an entry and its own
    copy are tied. NaN where all are."""
    x, y = signs
    agree, by_x, by_y = (((counts @ pairs) * counts).sum(axis=1) for pairs in (x * y, x * x, y * y))
    untied = np.sqrt(by_x * by_y)
    taus: NDArray[np.float64] = np.full(len(counts), nan)
    np.divide(agree, untied, out=taus, where=untied > 0)
    return taus
