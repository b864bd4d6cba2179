"""Rows that come in clusters: writers, patients, templates. Rows of one cluster are alike, and say less than so many.

With n rows, n_c of them in cluster c, and S_c the sum over cluster c of what each row's score lies above the mean, the
variance of the mean is estimated by

    V = 1/n^2 sum_c S_c^2 / (1 - n_c / n)

It is the cluster-robust variance CR2 of a regression on nothing but an intercept (Bell and McCaffrey, Survey
Methodology 2002): there (I - H_c)^(-1/2) takes the residuals of a cluster times 1 / sqrt(1 - n_c / n). Its degrees of
freedom are Satterthwaite's under rows of equal variance (Bell and McCaffrey 2002; Imbens and Kolesar, Review of
Economics and Statistics 2016), which for the intercept are, with f_c = n_c / n and u_c = f_c^2 / (1 - f_c),

    df = 1 / (sum_c f_c^2 + (sum_c u_c)^2 - sum_c u_c^2)

C - 1 for C equal clusters, less where some are large. Clusters of one row each give the plain variance of a mean, with
n - 1 degrees of freedom.

How clusters are treated depends on how many there are (`choose_cluster_treatment`):

- `random`, for FEW or more: V; the mean is of the clusters that these were drawn from.
- `fixed`, for 2 to FEW - 1, too few to say anything of others: a stratified sample, whose variance is that of rows
  within clusters; the mean is of these clusters only.
- `one`: all rows are of one cluster: rows as drawn independently within it, which says nothing of other clusters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FEW = 6
"""From how many clusters on they are a sample of clusters."""

Codes = NDArray[np.int64]
Treated = Literal["random", "fixed", "one"]


def encode_clusters(groups: NDArray[Any] | None) -> Codes | None:
    """The cluster of each row, 0 .. C - 1 in the order of the groups' names, shape (n,), from the rows' groups (n,);
    None where there are none, or where each row is a group of its own: then rows are drawn independently."""
    if groups is None:
        return None
    names, inverse = np.unique(groups, return_inverse=True)
    return None if 1 < len(names) == len(groups) else inverse.astype(np.int64)


def count_clusters(clusters: Codes | None) -> int | None:
    """How many clusters have rows."""
    return None if clusters is None else len(np.unique(clusters))


@dataclass(frozen=True)
class Clustering:
    """The rows' clusters as an interval treats them: how many there are, and how they were treated; None where rows are
    drawn independently. `mixed`: of a difference between rows that were treated unlike."""

    count: int | None = None
    treated: Treated | Literal["mixed"] | None = None

    def beside(self, other: Clustering) -> Clustering:
        """Of a value on both these rows and others."""
        known = [clusters.count for clusters in (self, other) if clusters.count is not None]
        return Clustering(sum(known) if known else None, self.treated if self.treated == other.treated else "mixed")

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"clusters": self.count, "clusters_are": self.treated}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Clustering:
        """The clustering that `to_dict` wrote; independent rows where nothing is said of clusters."""
        return cls(record.get("clusters"), record.get("clusters_are"))


INDEPENDENT = Clustering()


def describe_clusters(views: Mapping[str, Clustering]) -> str:
    """What intervals over the rows of some views, by name, say of clusters, for the end of the line that explains them;
    empty where the rows of no view are known to come in clusters."""
    text = ""
    for how, words in _WORDS.items():
        counts = {name: view.count for name, view in views.items() if view.treated == how}
        if counts and how == "one":
            text += f"; {' and '.join(counts)} rows from one domain{' each' * (len(counts) > 1)}: {words}"
        elif counts:
            text += f"; {' and '.join(f'{name} rows in {number}' for name, number in counts.items())} clusters, {words}"
    return text


_WORDS = {
    "random": "taken as drawn from more of their kind",
    "fixed": "too few to say anything of others",
    "one": "nothing is said of others",
}


def make_clustering(clusters: Codes | None) -> Clustering:
    """What these clusters are to an interval."""
    return Clustering(count_clusters(clusters), choose_cluster_treatment(clusters))


def choose_cluster_treatment(clusters: Codes | None) -> Treated | None:
    """How an interval treats these clusters; None where rows are drawn independently."""
    number = count_clusters(clusters)
    if number is None:
        return None
    return "random" if number >= FEW else "fixed" if number > 1 else "one"


def estimate_mean_covariance(
    rows: NDArray[np.float64], clusters: Codes | None, ends: tuple[float, float] | None = None
) -> tuple[NDArray[np.float64], float]:
    """The covariance matrix (M, M) of the means of M rows of scores, `rows` of shape (M, n), over the same n rows, and
    the degrees of freedom that each number in it, and each difference of two means, was estimated with.

    clusters: (n,), `encode_clusters`; the degrees of freedom depend on the clusters' sizes alone. ends: the least and
    the greatest score. Each is counted as one row more, so that a mean at the very end of the scale keeps a variance
    (as Agresti and Coull 1998 do with two of each): as one stratum more where clusters are fixed; where they are
    random, as one row of as many as say as much as these n (n by the design effect, the share of V in the variance of
    independent rows: Korn and Graubard, Survey Methodology 1998). Without, scores that are all alike have no variance.

    NaN, with 0 degrees of freedom, of a single row, and where scores are not finite."""
    how = choose_cluster_treatment(clusters)
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
    """What each cluster adds to means, (M, C), from how far the clusters' own means lie from them, `deviations` (M, C),
    of clusters of `sizes` (C,) rows: the covariance of the means is the product of this with its transpose."""
    share = sizes / sizes.sum()
    weighted: NDArray[np.float64] = deviations * (share / np.sqrt(1 - share))
    return weighted


def compute_degrees_of_freedom(sizes: NDArray[np.int64]) -> float:
    """Those of that covariance, under rows of equal variance."""
    if sizes.min() == sizes.max():
        return len(sizes) - 1.0  # exactly
    share = sizes / sizes.sum()
    leverage = share**2 / (1 - share)
    return 1 / float((share**2).sum() + leverage.sum() ** 2 - (leverage**2).sum())


def _estimate_stratified_covariance(
    rest: NDArray[np.float64], clusters: Codes, sizes: NDArray[np.int64]
) -> tuple[NDArray[np.float64], float]:
    """sum_c n_c s_c^2 / n^2 (Cochran, Sampling Techniques, 1977, equation 5.7). A stratum of one row, which shows no
    variance, counts with the others' pooled one; its degrees of freedom are Satterthwaite's under equal variances."""
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
    """The sums of each row of scores over each cluster, (M, clusters)."""
    return np.stack([np.bincount(clusters, row, number) for row in rows])
