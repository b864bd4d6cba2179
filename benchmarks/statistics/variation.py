"""Variance components of a score: a random-effects model with crossed and nested effects.

The score of row i in cluster c by the model of training seed s is modelled as

    y_is = mean + cluster_c + row_i + seed_s + (row x seed)_is

with independent effects, whose variances are the components: rows are crossed with seeds and nested in clusters. The
residual combines the interaction and the randomness of single predictions, which cannot be separated with one
prediction per row and seed. The components are estimated by equating mean squares with their expectations (analysis of
variance estimators: Searle, Casella and McCulloch, Variance Components, 1992, chapters 3 and 4), unbiased except for
clipping at 0. Their sum is the variance of the score of a single prediction, for a new row by a model with a new seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum

import numpy as np
from numpy.typing import NDArray

from .clusters import Codes, make_clustering
from .interval import Record
from .sample import RowScores, Sample, Scores


@dataclass(frozen=True)
class Component(Record):
    """A variance and its share of the total."""

    variance: float
    share: float


@dataclass(frozen=True)
class Variation(Record):
    """The variance of a single prediction's score by source (`estimate_components`), with six decimals; sources that do
    not vary are None. rows, seeds, clusters: those of the sample from which it was estimated, as in an `Estimate`."""

    components: Mapping[str, Component | None]
    total: float
    rows: int
    seeds: int
    clusters: int | None = None
    clusters_are: str | None = None


def estimate_components(scores: Scores, clusters: Codes | None = None) -> dict[str, float | None]:
    """Estimate the components of `scores` (seeds, rows) with at least two seeds and rows, and `clusters` (rows,), by
    name; `clusters` is None without clusters, or with only one."""
    seeds, rows = scores.shape
    by_row, by_seed, mean = scores.mean(axis=0), scores.mean(axis=1), scores.mean()
    residual = _compute_mean_square(scores - by_row - by_seed[:, None] + mean, (rows - 1) * (seeds - 1))
    seed = (rows * _compute_mean_square(by_seed - mean, seeds - 1) - residual) / rows
    between, within = _estimate_cluster_variances(by_row, clusters)
    return {
        "clusters": None if between is None else max(between, 0.0),
        "rows": max(within - residual / seeds, 0.0),
        "seeds": max(seed, 0.0),
        "rows_by_seeds": residual,
    }


def _compute_mean_square(deviations: NDArray[np.float64], df: int) -> float:
    return float(np.sum(deviations**2)) / df


def _estimate_cluster_variances(means: NDArray[np.float64], clusters: Codes | None) -> tuple[float | None, float]:
    """Estimate the variance between clusters (None without at least two), and that of the rows' means within them."""
    rows, count = len(means), make_clustering(clusters).count or 1
    if clusters is None or not 1 < count < rows:
        return None, _compute_mean_square(means - means.mean(), rows - 1)
    sizes = np.bincount(clusters)
    of = np.bincount(clusters, means) / np.maximum(sizes, 1)
    within = _compute_mean_square(means - of[clusters], rows - count)
    between = float(np.sum(sizes * (of - means.mean()) ** 2)) / (count - 1)
    return (between - within) / ((rows - float(np.sum(sizes**2)) / rows) / (count - 1)), within


def estimate_variation(sample: Sample) -> Variation | None:
    """Estimate the components of a measured view; None unless it is a mean over rows with several seeds."""
    if not isinstance(sample, RowScores) or min(sample.scores.shape) < 2 or not np.isfinite(sample.scores).all():
        return None
    components = {"draws": None} | estimate_components(sample.scores, sample.clusters)  # records of boards have `draws`
    total = fsum(value for value in components.values() if value is not None)
    shares = {
        name: value if value is None else Component(round(value, 6), round(value / (total or 1.0), 6))
        for name, value in components.items()
    }
    seeds, rows = sample.scores.shape
    return Variation(shares, round(total, 6), rows, seeds, *sample.clustering.to_dict().values())
