"""Are two models equal on the rows that both answered? The difference with its interval, then p by an exact test.

The exact test holds for any number of rows, and speaks of these trained models: it asks what other rows would have
said. Training noise is not in it. The t test beside it has rows and training seeds in it, as the interval has, and is
what tells one way of training from another.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .clusters import treated
from .interval import crossed, paired_difference
from .mcnemar import mcnemar
from .sample import RowScores, Sample
from .sign_flip import FLIPS, MOST, sign_flip, units
from .spread import average, seed_spread
from .student_t import upper_tail


def compare_rows(left: Sample, right: Sample) -> dict[str, Any]:
    """left - right, two models on the same rows (and clusters), of one seed or more each. Plain JSON:

    difference: its value and 95 % interval (`interval.paired_difference`). test, p, tests: the exact test by name, its
    two-sided p, and what it speaks of; all None where there is no such test, as of a metric that is no mean of rows
    (macro-F1, AUROC), whose values the t test compares. With McNemar's also mid_p, and the rows
    that only_left and only_right has right. t: p and df of the t test over all that the interval covers."""
    if left.rows != right.rows:
        raise ValueError(f"two models are compared on the same rows, not on {left.rows} and {right.rows}")
    found = paired_difference(left, right)
    record: dict[str, Any] = {"difference": found.to_dict(), "test": None, "p": None, "tests": None, "t": None}
    if not found.defined:
        return record
    p, df = paired_t(left, right)
    record["t"] = {"p": p, "df": None if df is None else round(df, 1)}
    if not isinstance(left, RowScores) or not isinstance(right, RowScores):
        return record
    record["tests"] = "these trained models, on other rows like these"
    if treated(left.clusters) == "random":
        record["tests"] = "these trained models, on other clusters of rows like these"
    return record | _exact(left, right)


def _exact(left: RowScores, right: RowScores) -> dict[str, Any]:
    clustered = treated(left.clusters) == "random"
    if not clustered and (counts := _one_sided_rows(left, right)) is not None:
        found = mcnemar(*counts)
        return {
            "test": "McNemar, exact binomial",
            "p": found.p,
            "mid_p": found.mid_p,
            "only_left": found.left,
            "only_right": found.right,
        }
    flipped = units(left.scores.mean(axis=0) - right.scores.mean(axis=0), left.clusters)
    if len(flipped) > MOST:
        return {"tests": None}
    flip = sign_flip(flipped)
    patterns = f"all 2^{flip.units} patterns" if flip.exact else f"{FLIPS:,} random patterns"
    return {"test": f"sign flips of {'cluster sums' if clustered else 'row differences'}, {patterns}", "p": flip.p}


def _one_sided_rows(left: RowScores, right: RowScores) -> tuple[int, int] | None:
    """The rows that only the left, and only the right model has right; None where rows are not simply right or wrong,
    as over several seeds."""
    if len(left.scores) > 1 or len(right.scores) > 1:
        return None
    a, b = _right(left.scores[0]), _right(right.scores[0])
    return None if a is None or b is None else (int((a & ~b).sum()), int((b & ~a).sum()))


def _right(scores: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    right: NDArray[np.bool_] = scores == 1
    return right if (right | (scores == 0)).all() else None


def paired_t(left: Sample, right: Sample) -> tuple[float, float | None]:
    """Two-sided p, and the degrees of freedom (None where nothing varies), of the t test that rejects at the 5 % level
    exactly where the interval of `paired_difference`, before it is cut, excludes 0."""
    rows = left.pooled().minus(right.pooled()).spread()
    seeds = [found for one in (left, right) if (found := seed_spread(one.per_seed)) is not None]
    whole = crossed([rows], seeds, left.interaction() + right.interaction())
    difference = average(left.per_seed) - average(right.per_seed)
    if not whole.variance:
        return (1.0 if difference == 0 else 0.0), None
    return min(1.0, 2 * upper_tail(abs(difference) / sqrt(whole.variance), whole.df)), whole.df
