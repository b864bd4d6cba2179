"""Who is better than whom: joint covariances, the max-t rule, rank sets, tie groups, worst groups."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from farshift.benchmarks.statistics.clusters import estimate_mean_covariance
from farshift.benchmarks.statistics.interval import estimate_paired_difference
from farshift.benchmarks.statistics.joint_covariance import (
    JointCovariance,
    estimate_count_covariance,
    estimate_joint_covariance,
    moderate_variances,
)
from farshift.benchmarks.statistics.ranks import (
    compute_critical_values,
    compute_rank_sets,
    estimate_best_probabilities,
    find_tie_groups,
    format_group_letters,
)
from farshift.benchmarks.statistics.sample import Replicates, RowScores
from farshift.benchmarks.statistics.worst_group import estimate_worst_group
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats
from simulation.ranks import report

RNG = np.random.default_rng(7)


def binary(rng, true, seeds=1, rows=400, clusters=None, seed_sd=0.0) -> list[RowScores]:
    hard = rng.uniform(-0.2, 0.2, rows) + seed_sd * rng.standard_normal((seeds, 1))
    return [
        RowScores((rng.uniform(size=(seeds, rows)) < value + hard).astype(float), clusters=clusters) for value in true
    ]


def plain(values, variances, df=1e6) -> JointCovariance:
    """Independent entries."""
    size = len(values)
    return JointCovariance(
        np.array(values, float), np.diag(np.array(variances, float)), np.full((size, size), float(df))
    )


@pytest.mark.parametrize(("seeds", "clusters"), [(1, None), (3, None), (1, 20), (4, 8), (1, 4)])
def test_the_variance_of_a_difference_is_that_of_the_paired_interval(seeds, clusters):
    """Within 2 %: the rows at the ends of the scale are added to each entry, not to each difference."""
    rng = np.random.default_rng(0)
    codes = None if clusters is None else np.arange(400) % clusters
    samples = binary(rng, [0.5, 0.6, 0.7], seeds, clusters=codes, seed_sd=0.1 * (seeds > 1))
    result = estimate_joint_covariance(samples)
    for i, j in combinations(range(3), 2):
        estimate = estimate_paired_difference(samples[i], samples[j])
        variance = estimate.row_se**2 + (estimate.seed_se or 0) ** 2 - estimate.interaction_se**2
        assert result.variance[i, j] == pytest.approx(variance, rel=0.02)
        assert result.difference[i, j] == pytest.approx(estimate.value, abs=1e-12)


def test_the_joint_covariance_is_that_of_the_means_by_brute_force():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(3, 2, 50))  # unbounded: nothing is added for the ends of the scale
    result = estimate_joint_covariance([RowScores(item, (-np.inf, np.inf)) for item in scores])
    by_seeds = scores.mean(axis=2).var(axis=1, ddof=1) / 2
    apart = (
        scores[:, 0] - scores[:, 1]
    )  # of two seeds, the interaction is a quarter of the variance of their difference
    expected = np.cov(scores.mean(axis=1)) / 50 + np.diag(np.maximum(by_seeds - apart.var(axis=1, ddof=1) / 50 / 4, 0))
    assert result.covariance == pytest.approx(expected, rel=1e-12)
    assert (result.root @ result.root) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_the_jackknife_gives_the_same_covariance_as_rows_where_the_metric_is_a_mean():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(4, 1, 60))
    rows = estimate_joint_covariance([RowScores(item, (-np.inf, np.inf)) for item in scores])
    left_out = [
        Replicates(
            [item.mean()],
            np.delete(np.tile(item[0], (60, 1)), range(0, 3600, 61)).reshape(60, 59).mean(axis=1)[None],
            np.ones(60, np.int64),
            (-1.0, 1.0),
        )
        for item in scores
    ]
    groups = estimate_joint_covariance(left_out)
    assert groups.covariance == pytest.approx(rows.covariance, rel=1e-9, abs=1e-15)
    assert groups.df == pytest.approx(np.full((4, 4), 59.0))


def test_degrees_of_freedom_are_satterthwaites_and_never_more_than_typical_seeds_allow():
    rng = np.random.default_rng(3)
    noisy = [RowScores(rng.normal(0, 1, (1, 500)) + rng.normal(0, 1, (3, 1)), (-np.inf, np.inf)) for _ in range(6)]
    agreeing = rng.normal(0, 1, (1, 500)) + np.array([[0], [1e-6], [-1e-6]])
    calm = RowScores(agreeing, (-np.inf, np.inf))
    result = estimate_joint_covariance([*noisy, calm])
    assert (result.df[:6, :6] < 4.5).all()  # rows hardly matter: little more than those of both entries' seeds
    assert result.df[6, 6] < 5  # three seeds agree, where the others' do not: that is not evidence of many df
    single = estimate_joint_covariance([RowScores(item.scores[:1], item.bounds) for item in noisy])
    assert single.df == pytest.approx(np.full((6, 6), 499.0))


def test_seeds_of_alike_entries_are_pooled_and_those_of_unlike_ones_are_not():
    rng = np.random.default_rng(8)
    df = np.full(40, 2.0)
    alike, known = moderate_variances(rng.chisquare(2, 40) / 2, df)
    assert alike.min() > 0.3  # where the least as measured is some hundredths
    assert (known > 4).all()
    unlike = np.exp(3 * rng.standard_normal(40)) * rng.chisquare(2, 40) / 2
    result, known = moderate_variances(unlike, df)
    assert (known < 3).all()
    assert (result >= unlike).all()


def test_variances_are_pooled_by_the_moments_of_their_logarithms():
    variance, df = np.array([0.4, 2.0, 0.05, 0.0, 9.0, 1.0]), np.array([2.0, 2, 4, 1, 4, 2])
    result, known = moderate_variances(variance, df)
    stored = variance > 0
    logs = np.log((variance * (df + 1))[stored]) - special.digamma(df[stored] / 2) + np.log(df[stored] / 2)
    unlike = logs.var(ddof=1) * (1 + 2 * np.sqrt(2 / 4)) - special.polygamma(1, df[stored] / 2).mean()
    prior = known[0] - 2
    assert special.polygamma(1, prior / 2) == pytest.approx(unlike, rel=1e-6)
    common = np.exp(logs.mean() + special.digamma(prior / 2) - np.log(prior / 2))
    assert result[2] == pytest.approx(max((prior * common / 5 + 4 * 0.05) / (prior + 4), 0.05))
    assert (result[3], known[3]) == (0, 1)  # without any chance in it, or a single seed
    assert known[stored] == pytest.approx(df[stored] + prior)


def test_three_entries_are_too_few_to_pool():
    variance, df = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2, 2])
    assert moderate_variances(variance, df) == (pytest.approx(variance), pytest.approx(df))


@pytest.mark.parametrize("rows", [2, 50, 3001])
def test_the_covariance_of_counts_is_that_of_their_means_in_any_order(rows):
    rng = np.random.default_rng(5)
    scores = [*binary(rng, [0.5] * 4, 5, rows), *binary(rng, [0.6] * 3, 2, rows), RowScores(np.ones((3, rows)))]
    counts, seeds = np.stack([item.scores.sum(axis=0) for item in scores]), [len(item.scores) for item in scores]
    result = estimate_count_covariance(counts, seeds)
    due = estimate_mean_covariance(np.stack([item.scores.mean(axis=0) for item in scores]), None)[0]
    np.testing.assert_allclose(result, due, rtol=1e-12, atol=1e-18)
    assert (result[-1] == 0).all()
    order = rng.permutation(len(scores))
    again = estimate_count_covariance(counts[order], [seeds[k] for k in order])
    assert again.tobytes() == result[np.ix_(order, order)].tobytes()


def test_copies_of_an_entry_are_tied_and_share_its_chance():
    samples = binary(np.random.default_rng(4), [0.7, 0.5], seeds=3)
    result = estimate_joint_covariance([samples[0], samples[1], samples[0], samples[0]])
    assert (result.variance[np.ix_([0, 2, 3], [0, 2, 3])] == 0).all()
    sets = compute_rank_sets(result)
    assert not sets.differs[0, 2]
    assert sets.differs[0, 1]
    assert sets.low.tolist() == [1, 4, 1, 1]
    assert sets.high.tolist() == [3, 4, 3, 3]
    assert sets.best[[0, 2, 3]] == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize(
    ("joint", "low", "best"),
    [
        (lambda: plain([0.5, 0.5, 0.6], [0, 0, 0]), [2, 2, 1], [0, 0, 1]),
        # Every row differs by 1: the difference has no variance in the sample, and is not a tie for that.
        (lambda: estimate_joint_covariance([RowScores(np.full((1, 50), v)) for v in (1.0, 0.0)]), [1, 2], [1, 0]),
        (lambda: plain([0.5], [0.01]), [1], [1]),
    ],
)
def test_what_has_no_noise_is_told_apart_and_nothing_is_divided_by_zero(joint, low, best):
    sets = compute_rank_sets(joint())
    assert (sets.low.tolist(), sets.best.tolist()) == (low, best)
    assert sets.high.tolist() == stats.rankdata(low, method="max").tolist()


@pytest.mark.parametrize(("entries", "df"), [(2, 3), (2, 800), (10, 19)])
def test_two_entries_are_the_plain_t_test_and_few_degrees_of_freedom_take_sidaks_bound(entries, df):
    critical = compute_critical_values(plain(np.zeros(entries), np.ones(entries), df))
    tail = 1 - 0.95 ** (2 / entries / (entries - 1))
    assert critical[0, 1] == pytest.approx(stats.t.isf(tail / 2, df), rel=1e-8)


def test_independent_entries_of_equal_noise_are_tukeys_range_test():
    """Max-t over all pairs is then Tukey's studentised range; the draws come within 1 % of its quantile."""
    for size in (3, 10, 40):
        critical = compute_critical_values(plain(np.zeros(size), np.ones(size)))[0, 1]
        assert critical == pytest.approx(stats.studentized_range.ppf(0.95, size, np.inf) / np.sqrt(2), rel=0.02)


def test_entries_in_near_copies_need_a_smaller_critical_value_than_independent_ones():
    copies = np.kron(np.ones((4, 4)), np.eye(5)) + 1e-4 * np.eye(20)
    alike = compute_critical_values(JointCovariance(np.zeros(20), copies, np.full((20, 20), 1e6)))
    apart = compute_critical_values(plain(np.zeros(20), np.ones(20)))
    assert alike.max() < 0.995 * apart.max()


@given(st.integers(2, 12), st.integers(0, 2**32 - 1), st.sampled_from([9.0, 500.0]))
def test_verdicts_and_intervals_agree(size, seed, df):
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(size, 2 * size)) * 0.3
    joint = JointCovariance(rng.normal(size=size), noise @ noise.T, np.full((size, size), df))
    result, pairs = compute_rank_sets(joint), np.triu_indices(size, 1)
    assert ((np.abs(joint.difference) > result.reach) == result.differs)[pairs].all()
    assert (result.differs == result.differs.T).all()


@given(st.integers(1, 10), st.integers(0, 2**32 - 1))
def test_rank_sets_hold_the_observed_rank_and_turn_with_the_scale(size, seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=size), 1)
    here = plain(values, rng.uniform(0.001, 0.2, size))
    sets, turned = compute_rank_sets(here), compute_rank_sets(plain(-values, np.diag(here.covariance)), better="lower")
    rank = stats.rankdata(-values, method="min")
    assert (sets.low <= rank).all()
    assert (sets.high >= stats.rankdata(-values, method="max")).all()
    assert (sets.low.tolist(), sets.high.tolist()) == (turned.low.tolist(), turned.high.tolist())
    assert sets.best.sum() == pytest.approx(1)
    assert compute_rank_sets(here).to_dict() == sets.to_dict()


def test_the_chance_of_being_best_is_the_normal_integral():
    result = estimate_best_probabilities(plain([0.1, 0.0], [0.01, 0.01]))
    assert result[0] == pytest.approx(stats.norm.cdf(0.1 / np.sqrt(0.02)), abs=0.02)
    even = estimate_best_probabilities(plain([0.0] * 4, [0.01] * 4))
    assert even == pytest.approx([0.25] * 4, abs=0.02)


@pytest.mark.parametrize(
    ("rank", "complaint"),
    [
        (lambda: plain([0.5, np.nan], [0.1, 0.1]), "exclude such entries"),
        (lambda: estimate_joint_covariance([RowScores(np.ones((1, 1)))] * 2), "exclude such entries"),
        (lambda: estimate_joint_covariance([RowScores(np.ones((1, rows))) for rows in (5, 6)]), "same rows"),
        (
            lambda: estimate_joint_covariance(
                [RowScores(np.ones((1, 9)), clusters=c) for c in (None, np.arange(9) % 3)]
            ),
            "same rows with the same clusters",
        ),
        (lambda: estimate_worst_group(RowScores(np.ones((1, 3))), np.array([0, 0, 1])), "at least two rows"),
    ],
)
def test_what_cannot_be_ranked_is_refused(rank, complaint):
    with pytest.raises(ValueError, match=complaint):
        rank()


graphs = st.integers(1, 8).flatmap(
    lambda size: st.tuples(
        st.just(size), st.lists(st.booleans(), min_size=size * (size - 1) // 2, max_size=size * (size - 1) // 2)
    )
)


def largest_cliques(differs: np.ndarray) -> set[tuple[int, ...]]:
    size = len(differs)
    alike = [
        group
        for count in range(1, size + 1)
        for group in combinations(range(size), count)
        if not any(differs[i, j] for i, j in combinations(group, 2))
    ]
    return {group for group in alike if not any(set(group) < set(other) for other in alike)}


@given(graphs)
def test_entries_share_a_tie_group_exactly_where_they_are_not_told_apart(drawn):
    size, edges = drawn
    differs = np.zeros((size, size), bool)
    differs[np.triu_indices(size, 1)] = edges
    differs |= differs.T
    groups = find_tie_groups(np.arange(size, 0, -1.0), differs)
    together = np.zeros((size, size), bool)
    for group in groups:
        together[np.ix_(group, group)] = True
    assert (together == ~differs).all()
    assert {tuple(sorted(group)) for group in groups} <= largest_cliques(differs)
    marks = format_group_letters(groups, size)
    for i, j in combinations(range(size), 2):
        assert bool(set(marks[i]) & set(marks[j])) != differs[i, j]


def test_where_noise_is_equal_tie_groups_are_all_runs_of_neighbours():
    values = np.array([0.9, 0.5, 0.8, 0.7, 0.1])
    differs = np.abs(values[:, None] - values) > 0.25
    assert find_tie_groups(values, differs) == [[0, 2, 3], [3, 1], [4]]
    assert find_tie_groups(values, differs, better="lower") == [[4], [1, 3], [3, 2, 0]]
    assert format_group_letters(find_tie_groups(values, differs), 5) == ["a", "b", "a", "ab", "c"]


def test_letters_go_on_after_z():
    groups = [[number] for number in range(28)]
    assert format_group_letters(groups, 28)[25:] == ["z", "aa", "ab"]
    assert format_group_letters([[0], *([1] for _ in range(26))], 2)[1].split(" ")[-1] == "aa"


@pytest.mark.slow
def test_rank_sets_paired_tests_and_worst_groups_hold_what_they_promise():
    """200 trials of each setting; the goal, and twice the Monte Carlo error that a share at its edge has."""
    for row in report(200):
        low, high = row["goal"]
        assert (
            low - 2 * np.sqrt(low * (1 - low) / 200) <= row["coverage"] <= high + 2 * np.sqrt(high * (1 - high) / 200)
        ), row


def groups_of(rng, true: np.ndarray, rows: int, seeds: int = 1) -> tuple[RowScores, np.ndarray]:
    groups = np.arange(rows) % len(true)
    return RowScores((rng.uniform(size=(seeds, rows)) < true[groups]).astype(float)), groups


def test_the_worst_of_equal_groups_looks_worse_than_it_is():
    sample, groups = groups_of(np.random.default_rng(4), np.full(30, 0.6), 6000)
    result = estimate_worst_group(sample, groups)
    assert result.value == min(sample.scores[0, groups == item].mean() for item in range(30))
    assert result.value < 0.57
    assert result.low < result.value < 0.6 <= result.high
    assert result.bias < -0.01
    assert result.to_dict() == estimate_worst_group(sample, groups).to_dict()


def test_a_clearly_worst_group_has_about_its_own_interval():
    sample, groups = groups_of(np.random.default_rng(5), np.array([0.3, 0.8, 0.85, 0.9]), 2000)
    result = estimate_worst_group(sample, groups)
    own = stats.norm.isf(0.025) * np.sqrt(0.3 * 0.7 / 500)
    assert result.group == 0
    assert result.bias == pytest.approx(0, abs=0.002)
    assert 1.9 * own < result.high - result.low < 2.3 * own


def test_a_loss_is_worst_where_it_is_highest():
    sample, groups = groups_of(np.random.default_rng(6), np.array([0.2, 0.4, 0.5]), 900)
    loss = estimate_worst_group(RowScores(1 - sample.scores), groups, better="lower")
    gain = estimate_worst_group(sample, groups)
    assert loss.group == gain.group == 0
    assert (loss.value, loss.low, loss.high) == pytest.approx((1 - gain.value, 1 - gain.high, 1 - gain.low))
    assert loss.bias == pytest.approx(-gain.bias, abs=0.002)


def test_half_the_scores_have_half_the_interval():
    sample, groups = groups_of(np.random.default_rng(7), np.array([0.4, 0.5, 0.45]), 900)
    half = estimate_worst_group(RowScores(sample.scores / 2, (0.0, 0.5)), groups)
    full = estimate_worst_group(sample, groups)
    assert 2 * half.low == pytest.approx(full.low)
    assert 2 * half.high == pytest.approx(full.high)
    assert 2 * half.bias == pytest.approx(full.bias, abs=0.003)


def test_clusters_within_groups_widen_and_groups_that_are_clusters_do_not():
    rng = np.random.default_rng(8)
    groups = np.repeat(np.arange(4), 400)
    clusters = np.arange(1600) // 40
    alike = rng.uniform(-0.3, 0.3, 40)[clusters]
    scores = (rng.uniform(size=(1, 1600)) < 0.5 + alike).astype(float)
    plain, clustered, same = (
        estimate_worst_group(RowScores(scores, clusters=item), groups) for item in (None, clusters, groups)
    )
    assert clustered.high - clustered.low > 1.5 * (plain.high - plain.low)
    assert same.to_dict() == plain.to_dict()
