"""Cluster-robust variance of means over rows in clusters (writers, patients, templates), whose rows are correlated.

With n rows, n_c of them in cluster c, and S_c the sum over cluster c of the deviations of the rows' scores from the
mean, the variance of the mean is estimated by

    V = 1/n^2 sum_c S_c^2 / (1 - n_c / n)

This is the cluster-robust variance CR2 of a regression with only an intercept (Bell and McCaffrey, Survey Methodology
2002), for which (I - H_c)^(-1/2) multiplies the residuals of a cluster by 1 / sqrt(1 - n_c / n). Its degrees of freedom
are Satterthwaite's for rows of equal variance (Bell and McCaffrey 2002; Imbens and Kolesar, Review of Economics and
Statistics 2016), which for the intercept are, with f_c = n_c / n and u_c = f_c^2 / (1 - f_c),

    df = 1 / (sum_c f_c^2 + (sum_c u_c)^2 - sum_c u_c^2)

C - 1 for C equal clusters, and fewer if some are large. Clusters of one row each give the usual variance of a mean,
with n - 1 degrees of freedom.

The treatment depends on the number of clusters (`make_clustering`):

- `random`, for FEW or more: V; inference is to the population of clusters that these are a sample of.
- `fixed`, for 2 to FEW - 1, too few to generalise to other clusters: a stratified sample, whose variance is that of
rows
  within clusters; inference is to these clusters only.
- `one`: all rows are in one cluster and treated as independent within it; there is no inference to other clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FEW = 6
"""The minimum number of clusters that is treated as a random sample of clusters."""

Codes = NDArray[np.int64]
Treated = Literal["random", "fixed", "one"]


def encode_clusters(groups: NDArray[Any] | None) -> Codes | None:
    """Encode the rows' groups (n,) as clusters 0 .. C - 1 in the order of their names, shape (n,).

    None if there are no groups, or if each row is its own group: rows are then independent."""
    if groups is None:
        return None
    names, inverse = np.unique(groups, return_inverse=True)
    return None if 1 < len(names) == len(groups) else inverse.astype(np.int64)


@dataclass(frozen=True)
class Clustering:
    """The number of clusters and their treatment in an interval; None if rows are independent. `mixed`: for a
    difference between rows with different treatments."""

    count: int | None = None
    treated: Treated | Literal["mixed"] | None = None

    def beside(self, other: Clustering) -> Clustering:
        """Return the clustering of a value that depends on both these rows and others."""
        known = [clusters.count for clusters in (self, other) if clusters.count is not None]
        return Clustering(sum(known) if known else None, self.treated if self.treated == other.treated else "mixed")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"clusters": self.count, "clusters_are": self.treated}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Clustering:
        """Read the clustering that `to_dict` wrote; independent rows if the record has no clusters."""
        return cls(record.get("clusters"), record.get("clusters_are"))


INDEPENDENT = Clustering()


def describe_clusters(views: Mapping[str, Clustering]) -> str:
    """Describe the clusters of some views, by name, as the end of an interval's description; empty if no view has
    clusters."""
    text = ""
    for how, words in _WORDS.items():
        counts = {name: view.count for name, view in views.items() if view.treated == how}
        if counts and how == "one":
            text += f"; {' and '.join(counts)} rows from one domain{' each' * (len(counts) > 1)}: {words}"
        elif counts:
            text += f"; {' and '.join(f'{name} rows in {number}' for name, number in counts.items())} clusters, {words}"
    return text


_WORDS = {
    "random": "treated as a random sample of clusters",
    "fixed": "too few to generalise to other clusters",
    "one": "no inference to other domains",
}


def make_clustering(clusters: Codes | None) -> Clustering:
    """Return the number of clusters that have rows, and how an interval treats them."""
    if clusters is None:
        return INDEPENDENT
    number = len(np.unique(clusters))
    return Clustering(number, "random" if number >= FEW else "fixed" if number > 1 else "one")


def estimate_mean_covariance(
    rows: NDArray[np.float64], clusters: Codes | None, ends: tuple[float, float] | None = None
) -> tuple[NDArray[np.float64], float]:
    """Estimate the covariance matrix (M, M) of M means over the same n rows, from scores `rows` of shape (M, n), and
    the degrees of freedom of each of its elements and of each difference of two means.

    clusters: (n,), `encode_clusters`; the degrees of freedom depend only on the clusters' sizes. ends: the minimum and
    maximum score. Each is added as one more row, so that a mean at the end of the scale has a positive variance (as
    Agresti and Coull 1998 do with two of each): as an additional stratum if clusters are fixed; if they are random, as
    one row of the effective sample size (n divided by the design effect, the ratio of V to the variance of independent
    rows: Korn and Graubard, Survey Methodology 1998). Without `ends`, equal scores have no variance.

    NaN with 0 degrees of freedom for a single row, and if scores are not finite."""
    how = make_clustering(clusters).treated
    if how == "one":
        clusters = None
    if ends is not None and how != "random":
        rows = np.concatenate([rows, np.tile(ends, (len(rows), 1))], axis=1)
        clusters = None if clusters is None else np.append(clusters, [clusters.max() + 1] * 2)
    models, n = rows.shape
    if n < 2 or not np.isfinite(rows).all():
        return np.full((models, models), np.nan), 0.0
    means = rows.mean(axis=1, keepdims=True)
    rest = rows - means
    if clusters is None:
        return rest @ rest.T / (n * (n - 1)), n - 1.0
    sizes = np.bincount(clusters)
    if how == "fixed":
        return _estimate_stratified_covariance(rest, clusters, sizes)
    occupied = sizes > 0
    weighted = compute_robust_terms(
        _sum_by_cluster(rest, clusters, len(sizes))[:, occupied] / sizes[occupied], sizes[occupied]
    )
    covariance, df = weighted @ weighted.T, compute_degrees_of_freedom(sizes[occupied])
    if ends is not None:
        plain = np.sum(rest**2, axis=1) / (n * (n - 1))
        design = np.maximum(np.diag(covariance) / np.where(plain > 0, plain, np.inf), 1.0)
        added = (np.array(ends) - means) * design[:, None] / n
        covariance = covariance + added @ added.T
    return covariance, df


def compute_robust_terms(deviations: NDArray[np.float64], sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Compute the contribution of each cluster to the means, (M, C), from the deviations of the clusters' means,
    `deviations` (M, C), for clusters of `sizes` (C,) rows.

    The covariance of the means is the product of the result with its transpose."""
    share = sizes / sizes.sum()
    weighted: NDArray[np.float64] = deviations * (share / np.sqrt(1 - share))
    return weighted


def compute_degrees_of_freedom(sizes: NDArray[np.int64]) -> float:
    """Compute the degrees of freedom of the cluster-robust covariance, for rows of equal variance."""
    if sizes.min() == sizes.max():
        return len(sizes) - 1.0  # exactly
    share = sizes / sizes.sum()
    leverage = share**2 / (1 - share)
    return 1 / float((share**2).sum() + leverage.sum() ** 2 - (leverage**2).sum())


def _estimate_stratified_covariance(
    rest: NDArray[np.float64], clusters: Codes, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float]:
    """Estimate sum_c n_c s_c^2 / n^2 (Cochran, Sampling Techniques, 1977, equation 5.7). A stratum of one row has no
    sample variance and gets the pooled variance of the others. Degrees of freedom are Satterthwaite's for equal
    variances."""
    n, many = rest.shape[1], sizes > 1
    free = sizes[many] - 1
    if not len(free):  # as many clusters as rows
        return rest @ rest.T / (n * (n - 1)), n - 1.0
    inner = rest - (_sum_by_cluster(rest, clusters, len(sizes)) / np.maximum(sizes, 1))[:, clusters]
    weights = np.zeros(len(sizes))
    weights[many] = sizes[many] / free + (sizes == 1).sum() / free.sum()
    df = n**2 / float((weights[many] ** 2 * free).sum())
    return (inner * weights[clusters]) @ inner.T / n**2, df


def _sum_by_cluster(rows: NDArray[np.float64], clusters: Codes, number: int) -> NDArray[np.float64]:
    """Sum each row of scores over each cluster, (M, clusters)."""
    return np.stack([np.bincount(clusters, row, number) for row in rows])
