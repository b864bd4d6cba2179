"""Simultaneous confidence sets for ranks.

An entry's rank set runs from 1 + the number of significantly better entries to M - the number of significantly worse
entries, by the max-t test over all pairs (max_t.py). Unless some pair is falsely declared to differ, which has
probability 1 - `level`, every true rank is in its set, and for tied entries all ranks that they share (Mogstad, Romano,
Shaikh and Wilhelm, Inference for Ranks, REStud 2024). The distribution of an entry's rank over resamples has no such
guarantee: if all entries tie, its percentile intervals almost never cover.

The probability of being best is the share of draws, value + Gaussian noise with the joint covariance, in which an entry
is first. It describes how clearly the first place is decided on these data; it is not a posterior probability, and is
overconfident with few seeds.
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
    """low, high (M,): the lowest and highest rank of each entry, from 1; best (M,): its probability of being best,
    which sum to 1; differs (M, M): which pairs differ significantly; critical (M, M): their critical t values; pairs:
    the full comparison, with simultaneous intervals and adjusted p-values."""

    low: NDArray[np.int64]
    high: NDArray[np.int64]
    best: Matrix
    differs: NDArray[np.bool_]
    critical: Matrix
    pairs: MaxT

    def to_dict(self) -> list[dict[str, Any]]:
        """Return plain JSON for each entry, with four decimals, the precision of the draws."""
        columns = zip(self.low.tolist(), self.high.tolist(), self.best.tolist(), strict=True)
        return [{"low": low, "high": high, "best": round(best, 4)} for low, high, best in columns]


def compute_rank_sets(
    joint_covariance: JointCovariance, better: Better = "higher", level: float = LEVEL, stream: str = "ranks"
) -> RankSets:
    """Compute the rank sets of M entries, which are simultaneously correct with probability `level`.

    stream: the name that seeds the draws; with another version of NumPy, a set may change within their Monte Carlo
    error."""
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
    """Estimate the share of draws in which each entry is first, (M,); entries with equal values whose difference has no
    noise divide it equally."""
    same = (joint_covariance.variance == 0) & (joint_covariance.difference == 0)
    first = same.argmax(axis=1)  # the first entry with the same values
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
    """Return the entries that may be first in a draw: for many entries, those within FAR standard errors of the best
    one, which others exceed with a probability of 1e-15."""
    if len(distinct) < MANY:
        return np.arange(len(distinct))
    top = int((sign * distinct.values).argmax())
    return np.flatnonzero(np.abs(distinct.t[top]) <= FAR)
