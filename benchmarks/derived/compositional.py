"""Can a model put together what it knows? The compositionality gap (Press et al., Findings of EMNLP 2023).

Of the questions whose parts a model all answers rightly, the share whose whole it answers wrongly:

    gap = P(whole wrong | all parts right)

A ratio of two counts over the same rows. Its row noise is that of the linearised ratio (Cochran, Sampling Techniques,
1977, chapter 6): with a_i the wrong wholes and b_i the answers with all parts right of row i, over seeds, it is the
noise of the sum of a_i - gap b_i, over clusters where rows come in any (clusters.py), with one wholly right and one
wholly wrong row added; seeds are the other margin of the table, and treated likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..statistics.clusters import Codes, clustering, codes, covariance_of_means
from ..statistics.interval import Estimate, interval, mean, read_estimate
from ..statistics.not_available import NotAvailable
from ..statistics.sample import RowScores
from ..statistics.spread import Spread


@dataclass(frozen=True)
class Compositionality:
    """`gap`: its `rows` are those where some seed has all parts right; `parts_right`: the share of answers with all
    parts right."""

    gap: Estimate | NotAvailable
    parts_right: Estimate | NotAvailable

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON; six decimals."""
        return {"gap": self.gap.to_dict(), "parts_right": self.parts_right.to_dict()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Compositionality:
        """What `to_dict` wrote."""
        return cls(read_estimate(record["gap"]), read_estimate(record["parts_right"]))


def compositionality_gap(
    whole_right: NDArray[np.bool_], parts_right: NDArray[np.bool_], clusters: Codes | None = None
) -> Compositionality:
    """The gap and its 95 % t interval over rows and training seeds.

    whole_right: (seeds, n); parts_right: (seeds, n, k), for questions of k parts; clusters: (n,), of the rows.
    """
    known: NDArray[np.bool_] = np.all(parts_right, axis=2)
    parts = RowScores(np.asarray(known, np.float64), clusters=clusters)
    return Compositionality(_gap(known & ~whole_right, known, clusters), mean(parts))


def _gap(failed: NDArray[np.bool_], known: NDArray[np.bool_], clusters: Codes | None) -> Estimate | NotAvailable:
    """The share of `known` that `failed`; both of shape (seeds, n), failed only where known."""
    if not known.any():
        return NotAvailable("no row has all its parts right")
    seeds = len(known)
    value = int(failed.sum()) / int(known.sum())
    held = known.any(axis=0)
    held_clusters = None if clusters is None else codes(clusters[held])
    by_row = _ratio_spread(failed[:, held].sum(axis=0), known[:, held].sum(axis=0), seeds, held_clusters)
    by_seed = _ratio_spread(failed.sum(axis=1), known.sum(axis=1)) if seeds > 1 else None
    # The ratio as a mean of rows, near where it is: the interaction of rows and seeds is estimated as for any mean.
    linear = RowScores((failed - value * known)[:, held] * held.sum() * seeds / known.sum(), _NO_ENDS, held_clusters)
    both, met = linear.interaction(), clustering(held_clusters)
    logit = int(held.sum()) if met.treated == "random" else 0
    shift = 0.0 if logit else (1 - 2 * value) / (held.sum() + 2)
    low, high, row_se, seed_se = interval(value, [by_row], [by_seed], (0.0, 1.0), both, logit, float(shift))
    each = tuple((failed.sum(axis=1) / known.sum(axis=1)).tolist()) if known.any(axis=1).all() else ()
    return Estimate(value, low, high, row_se, seed_se, int(held.sum()), seeds, each, met, by_row.df, sqrt(both))


_NO_ENDS = (-inf, inf)


def _ratio_spread(
    above: NDArray[np.int64], below: NDArray[np.int64], most: int = 0, clusters: Codes | None = None
) -> Spread:
    """The variance of sum(above) / sum(below), over units that were drawn, all of shape (units,); with a unit more at
    each end where one can be up to `most` above and below."""
    ends = 2 if most else 0
    total = float(below.sum() + ends * most)
    ratio = float(above.sum() + most) / total
    given = (-ratio * most, most - ratio * most) if most else None
    covariance, df = covariance_of_means((above - ratio * below)[None], clusters, given)
    return Spread(float(covariance[0, 0]) * ((len(above) + ends) / total) ** 2, df)
