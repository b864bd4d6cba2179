"""The compositionality gap (Press et al., Findings of EMNLP 2023).

Of the questions whose parts a model all answers correctly, the share whose whole it answers incorrectly:

    gap = P(whole wrong | all parts right)

The gap is a ratio of two counts over the same rows. Its row variance is that of the linearised ratio (Cochran, Sampling
Techniques, 1977, chapter 6): with a_i the number of wrong wholes and b_i the number of predictions with all parts right
for row i, over seeds, it is the variance of the sum of a_i - gap b_i, over clusters if rows are clustered
(clusters.py), with one entirely right and one entirely wrong row added. Seeds are the other margin of the table, with
the same estimator.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from ..statistics.clusters import Codes, encode_clusters, estimate_mean_covariance, make_clustering
from ..statistics.interval import Estimate, NotAvailable, Record, estimate_mean, make_estimate
from ..statistics.sample import RowScores
from ..statistics.variance_estimate import VarianceEstimate


@dataclass(frozen=True)
class Compositionality(Record):
    """The compositionality gap. `gap`: its `rows` are those for which some seed has all parts right; `parts_right`: the
    share of predictions with all parts right."""

    gap: Estimate | NotAvailable
    parts_right: Estimate | NotAvailable


def estimate_compositionality_gap(
    whole_right: NDArray[np.bool_], parts_right: NDArray[np.bool_], clusters: Codes | None = None
) -> Compositionality:
    """Estimate the gap and its 95 % t interval over rows and training seeds.

    whole_right: (seeds, n); parts_right: (seeds, n, k), for questions with k parts; clusters: (n,), of the rows.
    """
    known: NDArray[np.bool_] = np.all(parts_right, axis=2)
    parts = RowScores(np.asarray(known, np.float64), clusters=clusters)
    return Compositionality(_estimate_gap(known & ~whole_right, known, clusters), estimate_mean(parts))


def _estimate_gap(
    failed: NDArray[np.bool_], known: NDArray[np.bool_], clusters: Codes | None
) -> Estimate | NotAvailable:
    """Estimate the share of `known` that `failed`; both of shape (seeds, n), failed only where known."""
    if not known.any():
        return NotAvailable("no row has all parts right")
    seeds = len(known)
    value = int(failed.sum()) / int(known.sum())
    known_rows = known.any(axis=0)
    known_clusters = None if clusters is None else encode_clusters(clusters[known_rows])
    by_row = _estimate_ratio_variance(
        failed[:, known_rows].sum(axis=0), known[:, known_rows].sum(axis=0), seeds, known_clusters
    )
    by_seed = _estimate_ratio_variance(failed.sum(axis=1), known.sum(axis=1)) if seeds > 1 else None
    # The ratio, linearised, is a mean of rows: the interaction of rows and seeds is estimated as for any mean.
    linear = RowScores(
        (failed - value * known)[:, known_rows] * known_rows.sum() * seeds / known.sum(), _NO_ENDS, known_clusters
    )
    clustering, rows = make_clustering(known_clusters), int(known_rows.sum())
    logit = clustering.treated == "random"
    return make_estimate(
        value,
        [by_row],
        [by_seed],
        (0.0, 1.0),
        row_count=rows,
        seed_count=seeds,
        per_seed=(failed.sum(axis=1) / known.sum(axis=1)).tolist() if known.any(axis=1).all() else (),
        clustering=clustering,
        interaction=linear.interaction(),
        logit=logit,
        shift=0.0 if logit else (1 - 2 * value) / (rows + 2),
    )


_NO_ENDS = (-inf, inf)


def _estimate_ratio_variance(
    above: NDArray[np.int64], below: NDArray[np.int64], most: int = 0, clusters: Codes | None = None
) -> VarianceEstimate:
    """Estimate the variance of sum(above) / sum(below) over sampled units, all of shape (units,), with one more unit at
    each end, which can be up to `most` above and below."""
    ends = 2 if most else 0
    total = float(below.sum() + ends * most)
    ratio = float(above.sum() + most) / total
    given = (-ratio * most, most - ratio * most) if most else None
    covariance, df = estimate_mean_covariance((above - ratio * below)[None], clusters, given)
    return VarianceEstimate(float(covariance[0, 0]) * ((len(above) + ends) / total) ** 2, df)
