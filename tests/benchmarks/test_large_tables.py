"""Short ways for large tables: each gives what the plain way gives, to the last bit wherever it says so."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.statistics import joint_covariance as module
from farshift.benchmarks.statistics import max_t as all_pairs
from farshift.benchmarks.statistics import ranks
from farshift.benchmarks.statistics.clusters import encode_clusters, estimate_mean_covariance
from farshift.benchmarks.statistics.detectable import measure_detectable
from farshift.benchmarks.statistics.interval import estimate_mean, estimate_paired_difference
from farshift.benchmarks.statistics.joint_covariance import JointCovariance, estimate_joint_covariance
from farshift.benchmarks.statistics.max_t import LargestPair, _compute_normal_tail, _find_largest, compare_all_pairs
from farshift.benchmarks.statistics.normalised import summarise_sample
from farshift.benchmarks.statistics.paired_test import run_paired_t
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.streams import make_generator
from farshift.benchmarks.statistics.tally import estimate_count_covariance, tally_sample

SOURCE = np.random.default_rng(5)


def scores(entries: int, rows: int, seeds: int) -> list[np.ndarray]:
    hard = SOURCE.random(rows)
    return [(SOURCE.random((seeds, rows)) < 0.3 + 0.5 * hard).astype(float) for _ in range(entries)]


@pytest.mark.parametrize("clusters", [None, 1, 4, 30])
@pytest.mark.parametrize(("seeds", "bounds"), [(1, (0.0, 1.0)), (5, (0.0, 1.0)), (3, (-np.inf, np.inf))])
def test_a_tally_gives_every_number_as_the_rows_give_it(clusters, seeds, bounds):
    group = None if clusters is None else encode_clusters(np.arange(200) % clusters)
    plain = [RowScores(item, bounds, group) for item in scores(6, 200, seeds)]
    short = [tally_sample(item) for item in plain]
    for left, right in zip(plain, short, strict=True):
        assert estimate_mean(right) == estimate_mean(left)
        assert summarise_sample(right) == summarise_sample(left)
        assert right.spread() == left.spread()
        assert right.pooled().pooled().per_seed == left.pooled().per_seed
        assert (right.rows, right.why, right.shift(), right.clustering) == (
            left.rows,
            left.why,
            left.shift(),
            left.clustering,
        )
    for k in range(1, 6):
        assert run_paired_t(short[k], short[0]) == run_paired_t(plain[k], plain[0])
        assert estimate_paired_difference(short[k], short[0]) == estimate_paired_difference(plain[k], plain[0])
        apart = short[k].pooled().minus(short[0].pooled())
        assert apart.per_seed == plain[k].pooled().minus(plain[0].pooled()).per_seed
        assert (apart.rows, apart.bounds) == (200, plain[k].minus(plain[0]).bounds)
    result, due = ([estimate_joint_covariance(item) for item in (short, plain)][k] for k in (0, 1))
    assert result.covariance.tobytes() == due.covariance.tobytes()
    assert result.df.tobytes() == due.df.tobytes()
    named = [{str(k): item for k, item in enumerate(some)} for some in (short, plain)]
    assert measure_detectable(named[0]) == measure_detectable(named[1])


def test_scores_that_are_no_counts_have_no_tally():
    assert tally_sample(RowScores(np.array([[0.5, 1.0]]))) is None
    assert tally_sample(RowScores(np.ones((16, 4)))) is None
    assert tally_sample(RowScores(np.array([[np.nan, 1.0]]))) is None
    with pytest.raises(TypeError, match="pooled"):
        tally_sample(RowScores(np.ones((1, 4)))).minus(None)


@pytest.mark.parametrize("rows", [2, 50, 3001])
def test_the_covariance_of_counts_is_that_of_their_means(rows):
    given = [*scores(4, rows, 5), *scores(3, rows, 2), np.ones((3, rows))]
    counts = [item.sum(axis=0).astype(np.uint8) for item in given]
    due = estimate_mean_covariance(np.stack([item.mean(axis=0) for item in given]), None)[0]
    result = estimate_count_covariance(counts, [len(item) for item in given])
    np.testing.assert_allclose(result, due, rtol=1e-12, atol=1e-18)
    assert (result[-1] == 0).all()
    order = SOURCE.permutation(len(given))
    again = estimate_count_covariance([counts[k] for k in order], [len(given[k]) for k in order])
    assert again.tobytes() == result[np.ix_(order, order)].tobytes()


def drawn(entries: int, family: float) -> JointCovariance:
    kinds = np.arange(entries) % 7
    covariance = family * (kinds[:, None] == kinds) + (1.01 - family) * np.eye(entries)
    covariance[1] = covariance[0]
    covariance[:, 1] = covariance[:, 0]  # a copy: their difference has no noise
    return JointCovariance(SOURCE.normal(size=entries), covariance / 100, np.full((entries, entries), 9000.0))


@pytest.mark.parametrize(("entries", "family"), [(2, 0.0), (12, 0.5), (40, 0.0), (61, 0.9)])
def test_the_largest_pair_is_found_without_looking_at_all_of_them(entries, family):
    joint = drawn(entries, family)
    weights = np.zeros_like(joint.se)
    np.divide(1.0, joint.se, out=weights, where=joint.se > 0)
    (draws,) = joint.noise(70, "draws")
    due = _find_largest(draws, weights)
    assert np.array_equal(LargestPair(weights).of(draws), due)
    for above in (*due[:3].tolist(), float(np.median(due)), 100.0):
        result = LargestPair(weights).of(draws, above)
        assert np.array_equal(result[due > above], due[due > above])
        assert (result[due <= above] <= above).all()


@pytest.mark.parametrize(("level", "careful"), [(0.5, 3.0), (0.95, 3.0), (0.999, 3.0), (0.999, -3.0)])
def test_the_critical_value_of_many_entries_is_that_of_all_draws(monkeypatch, level, careful):
    """Also where the first draws say too little, so that all are looked at again."""
    monkeypatch.setattr(all_pairs, "MANY", 10)
    monkeypatch.setattr(all_pairs, "CAREFUL", careful)
    joint = drawn(40, 0.5)
    result = compare_all_pairs(joint, level, "draws")
    assert result.maxima is not None
    position = int(np.ceil(level * (len(result.maxima) + 1))) - 1
    assert result.tail == _compute_normal_tail(float(result.maxima[position]))


def test_many_entries_are_drawn_in_another_way_and_rank_alike(monkeypatch):
    """The triangular root instead of the symmetric one, and the chance of being best among those that have any."""
    values, noise = np.linspace(0, 1, 60), 0.05 * SOURCE.normal(size=(60, 60))
    joint = JointCovariance(values, noise @ noise.T / 60 + 0.002 * np.eye(60), np.full((60, 60), 9000.0))
    plain = ranks.compute_rank_sets(joint)
    for position in (module, ranks, ranks.compare_all_pairs.__globals__):
        if isinstance(position, dict):
            monkeypatch.setitem(position, "MANY", 10)
        else:
            monkeypatch.setattr(position, "MANY", 10)
    short = ranks.compute_rank_sets(JointCovariance(joint.values, joint.covariance, joint.df))
    assert plain.pairs.maxima is not None
    assert short.pairs.tail == pytest.approx(plain.pairs.tail, rel=0.2)
    assert np.abs(short.low - plain.low).max() <= 1
    assert short.best.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(short.best, plain.best, atol=0.02)


def test_a_covariance_without_a_triangular_root_has_the_symmetric_one(monkeypatch):
    monkeypatch.setattr(module, "MANY", 2)
    joint = JointCovariance(np.zeros(3), np.ones((3, 3)), np.full((3, 3), 9.0))
    np.testing.assert_allclose(joint.factor @ joint.factor.T, joint.covariance, atol=1e-9)


@pytest.mark.parametrize("entries", [3, 257, 300])
def test_a_triangular_root_is_multiplied_without_its_zeros(entries):
    noise = SOURCE.normal(size=(entries, entries))
    joint = JointCovariance(np.zeros(entries), noise @ noise.T + np.eye(entries), np.full((entries, entries), 9.0))
    (result,) = joint.noise(7, "draws")
    assert (joint.factor is joint.root) == (entries == 3)
    np.testing.assert_allclose(result, joint.factor @ make_generator("draws").standard_normal((entries, 7)), atol=1e-9)
