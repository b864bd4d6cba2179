"""Can a model put together what it knows? The compositionality gap (Press et al., Findings of EMNLP 2023).

Of the questions whose parts a model all answers rightly, the share whose whole it answers wrongly:

    gap = P(whole wrong | all parts right)

A ratio of two counts over the same rows. Its row noise is that of the linearised ratio (Cochran, Sampling Techniques,
1977, chapter 6): with a_i the wrong wholes and b_i the answers with all parts right of row i, over seeds, it is the
noise of the sum of a_i - gap b_i, with one wholly right and one wholly wrong row added (`mean_spread`); seeds are the
other margin of the table, and treated likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..statistics.interval import Estimate, interval, mean
from ..statistics.sample import RowScores
from ..statistics.spread import Spread
from .not_available import NotAvailable


@dataclass(frozen=True)
class Compositionality:
    """`gap`: its `rows` are those where some seed has all parts right; `parts_right`: the share of answers with all
    parts right."""

    gap: Estimate | NotAvailable
    parts_right: Estimate

    def record(self) -> dict[str, Any]:
        """Plain JSON; six decimals."""
        return {"gap": self.gap.record(), "parts_right": self.parts_right.record()}


def compositionality_gap(whole_right: NDArray[np.bool_], parts_right: NDArray[np.bool_]) -> Compositionality:
    """The gap and its 95 % t interval over rows and training seeds.

    whole_right: (seeds, n); parts_right: (seeds, n, k), for questions of k parts.
    """
    known: NDArray[np.bool_] = np.all(parts_right, axis=2)
    return Compositionality(_gap(known & ~whole_right, known), mean(RowScores(np.asarray(known, np.float64))))


def _gap(failed: NDArray[np.bool_], known: NDArray[np.bool_]) -> Estimate | NotAvailable:
    """The share of `known` that `failed`; both of shape (seeds, n), failed only where known."""
    if not known.any():
        return NotAvailable("no row has all its parts right")
    seeds = len(known)
    value = int(failed.sum()) / int(known.sum())
    held = known.any(axis=0)
    by_row = _ratio_spread(
        np.append(failed[:, held].sum(axis=0), [0, seeds]), np.append(known[:, held].sum(axis=0), [seeds, seeds])
    )
    by_seed = _ratio_spread(failed.sum(axis=1), known.sum(axis=1)) if seeds > 1 else None
    low, high, row_se, seed_se = interval(value, [by_row], [by_seed], (0.0, 1.0))
    each = tuple((failed.sum(axis=1) / known.sum(axis=1)).tolist()) if known.any(axis=1).all() else ()
    return Estimate(value, low, high, row_se, seed_se, int(held.sum()), seeds, each)


def _ratio_spread(above: NDArray[np.int64], below: NDArray[np.int64]) -> Spread:
    """The variance of sum(above) / sum(below), over units that were drawn; both of shape (units,)."""
    units, total = len(above), below.sum()
    rest = above - above.sum() / total * below
    return Spread(float(np.sum(rest**2)) / float(total) ** 2 * units / (units - 1), units - 1)
