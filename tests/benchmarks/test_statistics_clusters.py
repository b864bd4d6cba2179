"""Rows in clusters: the cluster-robust variance held against its definition by matrices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from farshift.benchmarks.statistics.clusters import (
    FEW,
    Clustering,
    describe_clusters,
    encode_clusters,
    estimate_mean_covariance,
    make_clustering,
)
from farshift.benchmarks.statistics.interval import estimate_gap, estimate_mean, estimate_paired_difference
from farshift.benchmarks.statistics.paired_test import run_paired_t
from farshift.benchmarks.statistics.sample import (
    Replicates,
    RowScores,
    assign_row_groups,
    count_jackknife_groups,
    deal_rows,
    make_replicates,
)
from farshift.benchmarks.statistics.variance_estimate import estimate_row_variance, make_generator
from hypothesis import given
from hypothesis import strategies as st
from simulation.clustered import World

cluster_sizes = st.lists(st.integers(1, 7), min_size=FEW, max_size=12)


def scores_in(sizes: list[int], models: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores (models, n) and clusters (n,), in no order."""
    rng = np.random.default_rng(seed)
    clusters = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    effects = rng.standard_normal((models, len(sizes)))
    return rng.standard_normal((models, len(clusters))) + effects[:, clusters], clusters


def cr2_by_matrices(scores: np.ndarray, clusters: np.ndarray) -> tuple[np.ndarray, float]:
    """Bell and McCaffrey's estimator and degrees of freedom as they define them, for a regression on an intercept."""
    n = scores.shape[1]
    x = np.ones((n, 1))
    bread = np.linalg.inv(x.T @ x)
    hat = x @ bread @ x.T
    residuals = (np.eye(n) - hat) @ scores.T
    meat, columns = 0.0, []
    for cluster in np.unique(clusters):
        own = clusters == cluster
        values, vectors = np.linalg.eigh(np.eye(own.sum()) - hat[np.ix_(own, own)])
        adjusted = vectors @ np.diag(values**-0.5) @ vectors.T
        influence = bread @ x[own].T @ adjusted
        part = (influence @ residuals[own]).T
        meat = meat + part @ part.T
        columns.append(((np.eye(n) - hat)[:, own] @ influence.T)[:, 0])
    omega = np.stack(columns, axis=1)
    values = np.linalg.eigvalsh(omega.T @ omega)
    return meat, float(values.sum() ** 2 / (values**2).sum())


@given(cluster_sizes, st.integers(0, 1000))
def test_the_closed_form_is_cr2_and_its_degrees_of_freedom(sizes, seed):
    scores, clusters = scores_in(sizes, 3, seed)
    covariance, df = estimate_mean_covariance(scores, clusters)
    expected, expected_df = cr2_by_matrices(scores, clusters)
    np.testing.assert_allclose(covariance, expected, rtol=1e-9, atol=1e-12)
    assert df == pytest.approx(expected_df, rel=1e-9)


@given(st.integers(2, 40), st.integers(0, 100))
def test_a_cluster_for_every_row_is_the_independent_case(rows, seed):
    scores = np.random.default_rng(seed).standard_normal((2, rows))
    plain, plain_df = estimate_mean_covariance(scores, None)
    np.testing.assert_allclose(plain, np.atleast_2d(np.cov(scores)) / rows, rtol=1e-9)
    assert encode_clusters(np.arange(rows)) is None
    alone, alone_df = estimate_mean_covariance(scores, np.arange(rows))
    np.testing.assert_allclose(alone, plain, rtol=1e-9)
    assert (alone_df, plain_df) == (pytest.approx(rows - 1), rows - 1)


def test_the_variance_of_a_difference_is_that_of_the_differences():
    scores, clusters = scores_in([3, 5, 8, 2, 9, 4, 4], 2)
    for item in (clusters, clusters % 3, None):
        covariance, df = estimate_mean_covariance(scores, item)
        direct, direct_df = estimate_mean_covariance(scores[:1] - scores[1:], item)
        assert covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1] == pytest.approx(direct[0, 0], rel=1e-9)
        assert df == direct_df


def test_few_clusters_are_strata():
    scores, clusters = scores_in([30, 50, 20])
    covariance, df = estimate_mean_covariance(scores, clusters)
    parts = [scores[0][clusters == item] for item in range(3)]
    by_hand = sum((len(part) / 100) ** 2 * part.var(ddof=1) / len(part) for part in parts)
    assert covariance[0, 0] == pytest.approx(by_hand, rel=1e-9)
    assert 90 < df <= 97
    lonely = np.append(clusters, 3)  # a stratum of one row counts with the others' pooled variance
    scores = np.append(scores, [[9.0]], axis=1)
    pooled = sum((len(part) - 1) * part.var(ddof=1) for part in parts) / 97
    by_hand = (sum(len(part) * part.var(ddof=1) for part in parts) + pooled) / 101**2
    assert estimate_mean_covariance(scores, lonely)[0][0, 0] == pytest.approx(by_hand, rel=1e-9)


def test_how_clusters_are_treated_is_said():
    groups = np.array(["b", "a", "b", "c"])
    assert encode_clusters(groups).tolist() == [1, 0, 1, 2]
    assert encode_clusters(None) is None
    assert make_clustering(None) == Clustering(None, None)
    assert make_clustering(np.zeros(9, int)) == Clustering(1, "one")
    assert make_clustering(np.arange(30) % 5) == Clustering(5, "fixed")
    assert make_clustering(np.arange(30) % FEW) == Clustering(FEW, "random")
    assert Clustering(1, "one").beside(Clustering(7, "random")) == Clustering(8, "mixed")
    output = describe_clusters({"ID": Clustering(8, "random"), "OOD": Clustering(7, "random")})
    assert output == "; ID rows in 8 and OOD rows in 7 clusters, treated as a random sample of clusters"
    output = describe_clusters({"ID": Clustering(1, "one"), "OOD": Clustering(4, "fixed")})
    assert output == "; OOD rows in 4 clusters, too few to generalise to other clusters; ID rows from one domain: no inference to other domains"  # fmt: skip
    assert describe_clusters({"ID": Clustering(), "OOD": Clustering()}) == ""


def test_one_domain_is_as_independent_rows():
    scores = np.random.default_rng(2).integers(0, 2, (1, 50)).astype(float)
    item, none = (estimate_mean(RowScores(scores, clusters=clusters)) for clusters in (np.zeros(50, int), None))
    assert (item.low, item.high) == (none.low, none.high)
    assert item.to_dict()["clusters_are"] == "one"
    assert none.to_dict()["clusters_are"] is None


@pytest.mark.parametrize("clusters", [None, 3, 20])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_score_of_zero_or_one_keeps_a_width(clusters, value):
    codes = None if clusters is None else np.arange(400) % clusters
    result = estimate_mean(RowScores(np.full((1, 400), value), clusters=codes))
    assert result.low <= value == result.value <= result.high
    assert 0.003 < result.high - result.low < 0.1


def test_rows_that_are_alike_in_their_cluster_count_once():
    """400 copies of 8 answers say no more than 8 answers."""
    answers = np.array([1.0, 0, 1, 1, 0, 1, 0, 1])
    copied = RowScores(np.repeat(answers, 50)[None], (-np.inf, np.inf), np.repeat(np.arange(8), 50))
    once = RowScores(answers[None], (-np.inf, np.inf))
    for name in ("row_se", "low", "high"):
        assert getattr(estimate_mean(copied), name) == pytest.approx(getattr(estimate_mean(once), name))


def test_intervals_near_an_end_of_the_scale_stay_in_it_and_lean_away():
    rng = np.random.default_rng(6)
    levels = rng.beta(4.5, 0.5, 12)
    scores = (rng.uniform(size=(1, 600)) < np.repeat(levels, 50)).astype(float)
    result = estimate_mean(RowScores(scores, clusters=np.repeat(np.arange(12), 50)))
    assert 0 < result.low < result.value < result.high < 1
    assert result.value - result.low > result.high - result.value


def test_clusters_are_in_gaps_differences_and_selections():
    scores, clusters = scores_in([40] * 10, 2)
    left, right = (RowScores(item[None], (-np.inf, np.inf), clusters) for item in scores)
    plain = [RowScores(item[None], (-np.inf, np.inf)) for item in scores]
    for of in (estimate_gap, estimate_paired_difference):
        assert of(left, right).row_se > 2 * of(*plain).row_se
        assert of(left, right).clustering.treated == "random"
    assert estimate_gap(left, right).to_dict()["clusters"] == 20
    assert estimate_paired_difference(left, right).to_dict()["clusters"] == 10
    few = left.select(clusters < 4)
    assert few.clustering == Clustering(4, "fixed")
    assert left.select(clusters == 7).clustering == Clustering(1, "one")


def squares(scores: np.ndarray, clusters: np.ndarray | None):
    """The mean, as a statistic that only states can give."""
    groups = assign_row_groups(np.arange(scores.shape[1], dtype=np.uint64), clusters)
    sizes = np.bincount(groups)
    states = [[np.array([row[groups == k].sum(), sizes[k]]) for k in range(len(sizes))] for row in scores]
    bounds, met = (-np.inf, np.inf), make_clustering(clusters)
    return make_replicates(states, np.add, lambda state: float(state[0] / state[1]), sizes, bounds, met)


def test_the_jackknife_of_a_mean_over_whole_clusters_is_the_cluster_robust_variance():
    scores, clusters = scores_in([3, 8, 5, 20, 9, 14, 4, 11])
    result, robust = squares(scores, clusters), estimate_row_variance(scores, (-np.inf, np.inf), clusters)
    assert len(result.sizes) == 8
    assert result.spread().variance == pytest.approx(robust.variance, rel=1e-9)
    assert result.spread().df == pytest.approx(robust.df)
    assert estimate_mean(result).clustering == Clustering(8, "random")


def test_many_clusters_are_dealt_whole_into_groups():
    ids = np.random.default_rng(0).integers(0, 2**63, 900).astype(np.uint64)
    clusters = np.arange(900) % 120
    groups = assign_row_groups(ids, clusters)
    assert len(np.unique(groups)) == 50
    assert all(len(np.unique(groups[clusters == item])) == 1 for item in range(120))
    assert sorted(np.bincount(groups[:120]).tolist())[::49] == [2, 3]
    order = np.random.default_rng(1).permutation(900)
    np.testing.assert_array_equal(assign_row_groups(ids[order], clusters[order]), groups[order])


def test_fixed_clusters_are_dealt_in_turn():
    ids = np.arange(1000, dtype=np.uint64)
    clusters = np.repeat([0, 1, 2], [500, 400, 100])
    groups = assign_row_groups(ids, clusters)
    by_cluster = np.array([np.bincount(groups[clusters == item], minlength=50) for item in range(3)])
    assert by_cluster.tolist() == [[10] * 50, [8] * 50, [2] * 50]
    assert count_jackknife_groups(ids, np.arange(1000) % 7) == 7
    assert set(deal_rows(ids, np.arange(1000) % 7, 3).tolist()) == {0, 1, 2}


def test_what_rows_and_seeds_make_together_is_counted_once():
    """Of chance alone, the variance of the mean is that of all predictions: rows' and seeds' terms are each of it."""
    scores = np.random.default_rng(3).standard_normal((20, 4000))
    sample = RowScores(scores, (-np.inf, np.inf))
    expected = 1 / scores.size
    assert sample.spread().variance == pytest.approx(expected, rel=0.1)
    assert sample.interaction() == pytest.approx(expected, rel=0.1)
    result = estimate_mean(sample)
    assert result.interaction_se == pytest.approx(expected**0.5, rel=0.05)
    assert (result.high - result.low) / 2 < 2.3 * max(result.row_se, result.seed_se)
    groups = squares(scores, None)
    assert groups.interaction() == pytest.approx(expected, rel=0.5)
    assert RowScores(scores[:1]).interaction() == 0.0


def test_a_row_at_the_end_is_a_row_and_not_a_cluster_or_a_class():
    """Over 48 clusters, and over rare classes, intervals are no wider than 1.5 times the ideal of 1.96 standard
    deviations on either side: a pseudo-row for each class, as large as a cluster, made them 5 to 20 times as wide."""
    world = World("macro_f1", 48, 20)
    source = make_generator("a row at the end")
    pairs = [[model.by(world.find_metric()) for model in world.draw(source, world.sizes)] for _ in range(12)]
    for estimates in (
        [estimate_mean(left) for left, _ in pairs],
        [estimate_paired_difference(*pair) for pair in pairs],
    ):
        width = np.mean([estimate.high - estimate.low for estimate in estimates])
        assert width / 3.92 < 1.8 * np.std([estimate.value for estimate in estimates], ddof=1)
        assert 0.02 < width < 0.3


def test_the_calibration_error_of_a_calibrated_model_may_be_none():
    """Its plain estimate is above 0 by the noise of rows alone; the interval includes what is left without it."""
    world, source = World("ece", 8, 50, even=True), make_generator("calibrated")
    estimates = [estimate_mean(world.draw(source, world.sizes)[0].by(world.find_metric())) for _ in range(10)]
    assert min(estimate.value for estimate in estimates) > 0.02
    assert sum(estimate.low == 0 for estimate in estimates) >= 9
    assert all(estimate.low < estimate.value < estimate.high < 0.3 for estimate in estimates)


def test_a_difference_whose_sign_may_be_bias_is_not_significant():
    sizes = np.full(8, 10)
    without = np.array([[0.1 + 0.001 * (-1) ** group for group in range(8)]])
    left, right = (
        Replicates([value], without * value / 0.1, sizes, (0.0, 1.0), bias=bias)
        for value, bias in ((0.1, 0.05), (0.08, 0.0))
    )
    result = estimate_paired_difference(left, right)
    assert result.low < 0 < result.value < result.high
    assert run_paired_t(left, right)[0] == 1
    assert run_paired_t(replace(left, bias=0.0), right)[0] < 0.05
