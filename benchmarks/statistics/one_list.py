"""Do validation and test predictions come from one list of candidates? A test of forged validation predictions.

Whoever knows the validation labels can have any candidate chosen: its validation predictions are made better than they
were, or all others' worse. Validation and ID test rows are of one distribution, so a candidate that stands above the
others by so much on the one stands so on the other. For each seed and candidate the contrast

    u = its row scores minus the mean of the other candidates' on the same rows

has one mean on both, but for noise of the rows; a shift of all candidates together, as of rows that are easier,
cancels in it. Where the two are not quite alike (validation labels may be wrong, as those of training are) contrasts
keep their sign and shrink or grow: whatever lies between none and twice that on test rows is granted. What is beyond is
held against its standard error by a t test, over all seeds and candidates by Bonferroni's rule at ALARM: so often at
most is an honest entry found odd.

A small forgery, within that noise, is not found; it moves the choice among candidates that ID rows cannot tell apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from .sample import RowScores
from .student_t import upper_tail

ALARM = 0.001


@dataclass(frozen=True)
class Mismatch:
    """The most surprising contrast: of which seed (its place) and candidate (its place), what it is on validation and
    on test rows, and its p, adjusted for all."""

    seed: int
    candidate: int
    validation: float
    test: float
    p: float


def mismatch(validation: Sequence[RowScores], test: Sequence[RowScores]) -> Mismatch | None:
    """The most surprising contrast between candidates' scores on validation rows and on ID test rows, one item a
    candidate, where its adjusted p is at most ALARM; None where none is, or there is a single candidate."""
    if len(validation) < 2:
        return None
    count = len(validation) * len(validation[0].scores)
    worst: Mismatch | None = None
    for seed in range(len(validation[0].scores)):
        before, after = _contrasts(validation, seed), _contrasts(test, seed)
        for candidate, (one, other) in enumerate(zip(before, after, strict=True)):
            p = min(1.0, count * _p(one, other))
            if p <= ALARM and (worst is None or p < worst.p):
                worst = Mismatch(seed, candidate, one.per_seed[0], other.per_seed[0], p)
    return worst


def _contrasts(candidates: Sequence[RowScores], seed: int) -> list[RowScores]:
    """Each candidate's row scores of a seed minus the mean of all others'."""
    scores = np.stack([one.scores[seed] for one in candidates])
    others = (scores.sum(axis=0) - scores) / (len(scores) - 1)
    low, high = candidates[0].bounds
    bounds = (low - high, high - low)
    return [RowScores(line[None, :], bounds, candidates[0].clusters) for line in scores - others]


def _p(one: RowScores, other: RowScores) -> float:
    """The two-sided p of a difference of two contrasts beyond the size of the second."""
    spreads = one.spread(), other.spread()
    variance = sum(spread.variance for spread in spreads)
    beyond = abs(one.per_seed[0] - other.per_seed[0]) - abs(other.per_seed[0])
    if beyond <= 0 or not variance > 0:
        return 1.0
    df = variance**2 / sum(spread.variance**2 / max(spread.df, 1) for spread in spreads if spread.variance > 0)
    return min(1.0, 2 * upper_tail(beyond / sqrt(variance), df))
