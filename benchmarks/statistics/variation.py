"""Where does the noise of a score come from? Its sources of variation apart, by crossed and nested random effects.

The score of row i, of cluster c, by the model of training seed s, is taken as

    y_is = mean + cluster_c + row_i + seed_s + (row x seed)_is

independent effects, whose variances are the components: rows are crossed with seeds and nested in clusters. What a row
and a seed leave over, chance in a single prediction and the interaction, cannot be separated with one prediction of
each. The components are estimated from mean squares, each set to what it is expected to be (analysis of variance
estimators: Searle, Casella and McCulloch, Variance Components, 1992, chapters 3 and 4), unbiased but for being cut off
at 0. Together they are the variance of the score of a single prediction: of a new row, by a model of a new seed.

Over several draws of the data (corrupted labels drawn anew), with models trained on each, seeds are nested in draws.
The draws' mean scores vary by the draws themselves and, known from within the draws, by rows and seeds: what is left is
the component of draws. Rows and clusters that are in several draws count as often as they differ: with w_di the weight
of row i in the mean of draw d, half of the mean over pairs of draws of sum_i (w_di - w_ei)^2 rows' variances.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.listings.plural import counted
from .clusters import Clustering, Codes, clustering, codes
from .sample import RowScores, Sample, Scores


@dataclass(frozen=True)
class Components:
    """Variances of the score of a single prediction. `clusters`: None where rows are in none, or all in one; `draws`:
    None where there is a single draw of the data."""

    clusters: float | None
    rows: float
    seeds: float
    rows_by_seeds: float
    draws: float | None = None

    @property
    def total(self) -> float:
        """The variance of a single prediction's score."""
        return fsum(value for value in self.named().values() if value is not None)

    def named(self) -> dict[str, float | None]:
        """The components by name, from the widest source to the narrowest."""
        return {
            "draws": self.draws,
            "clusters": self.clusters,
            "rows": self.rows,
            "seeds": self.seeds,
            "rows_by_seeds": self.rows_by_seeds,
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON: `variance` and `share` of each component, six decimals, and the total."""
        total = self.total
        return {
            "components": {
                name: None
                if value is None
                else {"variance": round(value, 6), "share": round(value / total, 6) if total else 0.0}
                for name, value in self.named().items()
            },
            "total": round(total, 6),
        }


def components(scores: Scores, clusters: Codes | None = None) -> Components:
    """The components of `scores` (seeds, rows) of two or more seeds and rows, with `clusters` (rows,)."""
    seeds, rows = scores.shape
    if seeds < 2 or rows < 2:
        given = f"{counted(seeds, 'seed')} on {counted(rows, 'row')}"
        raise ValueError(f"{given}: its components can be separated with two or more of each")
    by_row, by_seed, mean = scores.mean(axis=0), scores.mean(axis=1), scores.mean()
    left_over = _mean_square(scores - by_row - by_seed[:, None] + mean, (rows - 1) * (seeds - 1))
    seed = (rows * _mean_square(by_seed - mean, seeds - 1) - left_over) / rows
    between, within = _of_clusters(by_row, clusters)
    cluster = None if between is None else max(between, 0.0)
    return Components(cluster, max(within - left_over / seeds, 0.0), max(seed, 0.0), left_over)


def _mean_square(deviations: NDArray[np.float64], df: int) -> float:
    return float(np.sum(deviations**2)) / df


def _of_clusters(means: NDArray[np.float64], clusters: Codes | None) -> tuple[float | None, float]:
    """The variance between clusters, None where there is one or none, and that of the rows' means within them."""
    rows, count = len(means), clustering(clusters).count or 1
    if clusters is None or not 1 < count < rows:
        return None, _mean_square(means - means.mean(), rows - 1)
    sizes = np.bincount(clusters)
    of = np.bincount(clusters, means) / np.maximum(sizes, 1)
    within = _mean_square(means - of[clusters], rows - count)
    between = float(np.sum(sizes * (of - means.mean()) ** 2)) / (count - 1)
    return (between - within) / ((rows - float(np.sum(sizes**2)) / rows) / (count - 1)), within


@dataclass(frozen=True)
class Draw:
    """What a model scored on one draw of the data: scores (seeds, rows), the rows' ids (rows,), and the names of their
    groups (rows,) where they have any. Ids and names mean the same in every draw."""

    scores: Scores
    row_ids: NDArray[np.uint64]
    groups: NDArray[Any] | None = None


def components_over_draws(draws: Sequence[Draw]) -> Components:
    """The components over two or more draws of the data: those within draws are the draws' means."""
    within = [components(one.scores, codes(one.groups)) for one in draws]
    rows, left_over = (_mean([getattr(one, name) for one in within]) for name in ("rows", "rows_by_seeds"))
    seeds = _mean([one.seeds for one in within])
    known = [one.clusters for one in within if one.clusters is not None]
    clusters = _mean(known) if len(known) == len(within) else None
    means = np.array([one.scores.mean() for one in draws])
    noise = seeds * _mean([1 / len(one.scores) for one in draws])
    noise += left_over * _mean([1 / one.scores.size for one in draws])
    noise += rows * _unlike([one.row_ids for one in draws])
    if clusters is not None:
        noise += clusters * _unlike([one.groups for one in draws if one.groups is not None])
    between = _mean_square(means - means.mean(), len(draws) - 1)
    return Components(clusters, rows, seeds, left_over, max(between - noise, 0.0))


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)


def _unlike(units: Sequence[NDArray[Any]]) -> float:
    """How much of the variance of a unit's effect is in half the squared difference of two draws' means, over all pairs
    of draws; `units`: each draw's units, one a row."""
    weights: list[dict[Any, float]] = []
    for one in units:
        names, counts = np.unique(one, return_counts=True)
        weights.append(dict(zip(names.tolist(), (counts / len(one)).tolist(), strict=True)))
    squares = [fsum(value**2 for value in one.values()) for one in weights]
    pairs = []
    for a, b in combinations(range(len(units)), 2):
        shared = fsum(weights[a][name] * weights[b][name] for name in weights[a].keys() & weights[b].keys())
        pairs.append((squares[a] + squares[b]) / 2 - shared)
    return _mean(pairs)


@dataclass(frozen=True)
class Component:
    """A variance, and its share of the total."""

    variance: float
    share: float


@dataclass(frozen=True)
class Variation:
    """The variance of a single prediction's score, by source; `components` has None for what does not vary here.
    rows, seeds, clustering: of the sample that it was estimated from."""

    components: Mapping[str, Component | None]
    total: float
    rows: int
    seeds: int
    clustering: Clustering

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "components": {name: None if one is None else {**one.__dict__} for name, one in self.components.items()},
            "total": self.total,
            "rows": self.rows,
            "seeds": self.seeds,
            **self.clustering.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Variation:
        """What `to_dict` wrote."""
        found = {name: None if one is None else Component(**one) for name, one in record["components"].items()}
        return cls(found, record["total"], record["rows"], record["seeds"], Clustering.from_dict(record))


def variation_of(sample: Sample) -> Variation | None:
    """The components of a measured view, six decimals; None for what is no mean of rows, and for a single seed."""
    if not isinstance(sample, RowScores) or min(sample.scores.shape) < 2 or not np.isfinite(sample.scores).all():
        return None
    found = components(sample.scores, sample.clusters).to_dict()
    counts = {"rows": sample.rows, "seeds": len(sample.scores), **sample.clustering.to_dict()}
    return Variation.from_dict(found | counts)
