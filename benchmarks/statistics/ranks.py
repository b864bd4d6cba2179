"""Which ranks can an entry have? Sets of ranks that hold all true ranks at once, with a stated probability.

An entry's rank set runs from 1 + the number of entries that are surely better to M - the number that are surely worse,
where surely means significantly, by the max-t rule over all pairs (max_t.py). As long as no pair is declared to
differ by mistake, which has the probability `level`, every true rank lies in its set, and of entries that truly tie all
ranks that they share (Mogstad, Romano, Shaikh and Wilhelm, Inference for Ranks, REStud 2024). The share of resamples in
which an entry takes a rank says no such thing: where all entries tie, the percentiles of these shares miss nearly
always.

The probability of being best is the share of draws, value + Gaussian noise of the joint covariance, in which an entry
is first. It says how decided the first place is on these data; it is not a posterior, and with few seeds too sure of
itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from .confidence_interval import LEVEL
from .joint_covariance import MANY, JointCovariance, Matrix
from .max_t import DRAWS, MaxT, compare_all_pairs

Better = Literal["higher", "lower"]

FAR = 8.0


@dataclass(frozen=True)
class RankSets:
    """low, high (M,): the least and the greatest rank of each entry, from 1; best (M,): its probability of being best,
    1 in sum; differs (M, M): which pairs differ significantly; critical (M, M): their critical t; pairs: all of the
    comparison, with its simultaneous intervals and adjusted p."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    best: Matrix
    differs: NDArray[np.bool_]
    critical: Matrix
    pairs: MaxT

    def to_dict(self) -> list[dict[str, Any]]:
        """Plain JSON of each entry; four decimals, which is what the draws are good for."""
        columns = zip(self.low.tolist(), self.high.tolist(), self.best.tolist(), strict=True)
        return [{"low": low, "high": high, "best": round(best, 4)} for low, high, best in columns]


def compute_rank_sets(
    joint_covariance: JointCovariance, better: Better = "higher", level: float = LEVEL, stream: str = "ranks"
) -> RankSets:
    """The rank sets of M entries, all of them right with probability `level`.

    stream: the name that seeds the draws; under another NumPy version a set may move within their Monte Carlo error."""
    pairs = compare_all_pairs(joint_covariance, level, f"{stream}/max-t")
    ahead = pairs.differs & (
        (joint_covariance.difference > 0) if better == "higher" else (joint_covariance.difference < 0)
    )
    return RankSets(
        low=1 + ahead.sum(axis=0),
        high=len(joint_covariance) - ahead.sum(axis=1),
        best=estimate_best_probabilities(joint_covariance, better, f"{stream}/best"),
        differs=pairs.differs,
        critical=pairs.critical,
        pairs=pairs,
    )


def estimate_best_probabilities(
    joint_covariance: JointCovariance, better: Better = "higher", stream: str = "best"
) -> Matrix:
    """The share of draws in which each entry is first, (M,); entries whose difference has no noise and whose values are
    equal share it."""
    same = (joint_covariance.variance == 0) & (joint_covariance.difference == 0)
    first = same.argmax(axis=1)  # the first of those with the same values as an entry
    distinct_entries, where, copies = np.unique(first, return_inverse=True, return_counts=True)
    sign = 1 if better == "higher" else -1
    wins = np.zeros(len(distinct_entries), np.int64)
    able = _find_contenders(joint_covariance.select(distinct_entries), sign)
    distinct = joint_covariance.select(distinct_entries[able])
    values = sign * distinct.values[:, None]
    for noise in distinct.noise(DRAWS, stream):
        first_of_each = np.ascontiguousarray((values + noise).T).argmax(axis=1)
        wins[able] += np.bincount(first_of_each, minlength=len(able))
    shares: Matrix = (wins / DRAWS / copies)[where]
    return shares


def _find_contenders(distinct: JointCovariance, sign: int) -> NDArray[np.int64]:
    """The entries that may be first in a draw: of many, those that no more than FAR standard errors part from the best
    one, which others pass with a probability of 1e-15."""
    if len(distinct) < MANY:
        return np.arange(len(distinct))
    top = int((sign * distinct.values).argmax())
    return np.flatnonzero(np.abs(distinct.t[top]) <= FAR)
