"""Exact tests of two models on the same rows: held against brute force and the binomial test."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from farshift.benchmarks.statistics.interval import estimate_paired_difference
from farshift.benchmarks.statistics.paired_test import (
    EXACT,
    MOST,
    adjust_by_holm,
    compare_rows,
    compute_flip_units,
    run_mcnemar,
    run_sign_flip,
)
from farshift.benchmarks.statistics.sample import RowScores
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

counts = st.one_of(st.integers(0, 12), st.integers(0, 3000))


@given(counts, counts)
def test_mcnemars_p_is_the_binomial_tests(left, right):
    p, mid_p = run_mcnemar(left, right)
    if left + right == 0:  # nothing that could tell them apart
        assert (p, mid_p) == (1.0, 1.0)
        return
    expected = stats.binomtest(left, left + right, 0.5).pvalue
    assert p == pytest.approx(expected, rel=1e-9, abs=1e-290)
    as_far = stats.binom.pmf(left, left + right, 0.5) * (1 if left == right else 2)
    assert mid_p == pytest.approx(expected - as_far / 2, rel=1e-9, abs=1e-12)
    assert run_mcnemar(right, left) == (p, mid_p)


def test_mcnemar_of_millions_of_rows_keeps_its_digits():
    p, _ = run_mcnemar(498_000, 502_000)
    assert p == pytest.approx(stats.binomtest(498_000, 1_000_000, 0.5).pvalue, rel=1e-7)


@given(st.lists(st.integers(-4, 4).map(float), min_size=1, max_size=9))
def test_few_sign_flips_are_all_of_them(differences):
    stored = compute_flip_units(np.array(differences))
    sums = [
        abs(sum(sign * abs(item) for sign, item in zip(signs, stored, strict=True)))
        for signs in product((-1, 1), repeat=len(stored))
    ]
    assert run_sign_flip(stored) == np.mean([item >= abs(stored.sum()) for item in sums])


def test_many_sign_flips_come_near_to_the_exact_p_and_are_the_same_every_time():
    rng = np.random.default_rng(1)
    apart = np.where(rng.uniform(size=90) < 0.62, 1.0, -1.0)
    result = run_sign_flip(apart)
    exact = run_mcnemar(int((apart > 0).sum()), int((apart < 0).sum()))[0]
    assert result == pytest.approx(exact, abs=4 * np.sqrt(exact / 9999))
    assert result == run_sign_flip(apart)
    assert run_sign_flip(np.array([])) == 1
    assert run_sign_flip(np.full(EXACT + 1, 0.1)) == pytest.approx(1 / 10_000)


def test_rows_in_clusters_are_flipped_together_and_rows_in_few_are_not():
    apart = np.array([1.0, 1, 1, -1, 1, 0, -1, 1, 1, 1, 1, 1])
    assert compute_flip_units(apart, np.repeat(np.arange(6), 2)).tolist() == [2, 1, 2, 2]  # two clusters cancel
    assert len(compute_flip_units(apart, np.repeat(np.arange(4), 3))) == 11
    thirds = np.array([1 / 3, 1 / 3, -2 / 3] * 7)
    assert len(compute_flip_units(thirds, np.repeat(np.arange(7), 3))) == 0  # whatever rounding leaves


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holms_adjustment_is_the_closed_test_of_bonferronis(p):
    """A hypothesis falls where every set of hypotheses that it is in falls: the largest p of those sets."""
    subsets = [item for count in range(1, len(p) + 1) for item in combinations(range(len(p)), count)]
    bonferroni = {item: min(1.0, len(item) * min(p[position] for position in item)) for item in subsets}
    expected = [max(bonferroni[item] for item in subsets if position in item) for position in range(len(p))]
    assert adjust_by_holm(p) == pytest.approx(expected)


def test_holm_refuses_what_is_no_p():
    with pytest.raises(ValueError, match="exclude tests without a p-value"):
        adjust_by_holm([0.1, np.nan])


def binary(values: str) -> RowScores:
    return RowScores(np.array([[float(item) for item in values]]))


def test_right_and_wrong_of_one_seed_are_mcnemars():
    result = compare_rows(binary("1111100011"), binary("1000000111"))
    assert result["test"] == "McNemar, exact binomial"
    assert (result["only_left"], result["only_right"]) == (4, 1)
    assert (result["p"], result["mid_p"]) == run_mcnemar(4, 1)
    assert result["difference"]["value"] == 0.3
    assert result["tests"] == "these trained models, on other rows like these"


def test_several_seeds_are_sign_flips_of_rows_beside_a_t_test_with_the_seeds_in_it():
    rng = np.random.default_rng(3)
    left, right = (RowScores((rng.uniform(size=(3, 200)) < value).astype(float)) for value in (0.7, 0.6))
    result, estimate = compare_rows(left, right), estimate_paired_difference(left, right)
    assert result["test"] == "sign flips of row differences, 9,999 random patterns"
    assert result["difference"] == estimate.to_dict()
    assert (result["t"]["p"] <= 0.05) == (not estimate.low <= 0 <= estimate.high)
    assert result["t"]["df"] < 199


def test_clustered_rows_are_sign_flips_of_cluster_sums():
    rng = np.random.default_rng(4)
    codes = np.arange(240) % 12
    left, right = (RowScores(rng.integers(0, 2, (1, 240)).astype(float), clusters=codes) for _ in range(2))
    result = compare_rows(left, right)
    assert result["test"].startswith("sign flips of cluster sums, all 2^")
    assert result["tests"] == "these trained models, on other clusters of rows like these"
    assert result["p"] == run_sign_flip(compute_flip_units(left.scores[0] - right.scores[0], codes))


def test_the_same_answers_are_never_told_apart():
    same = binary("1010111")
    assert compare_rows(same, same)["p"] == compare_rows(same, same)["t"]["p"] == 1
    flat = RowScores(np.array([[0.25, 0.5]]), (-np.inf, np.inf))
    assert compare_rows(flat, flat)["t"] == {"p": 1.0, "df": None}


def test_more_rows_than_can_be_flipped_have_the_t_test_alone():
    scores = np.random.default_rng(5).normal(size=(2, 1, MOST + 1))
    result = compare_rows(*(RowScores(item, (-np.inf, np.inf)) for item in scores))
    assert (result["test"], result["p"], result["tests"]) == (None, None, None)
    oracle = stats.ttest_rel(scores[0, 0], scores[1, 0])
    assert result["t"]["p"] == pytest.approx(oracle.pvalue, rel=1e-6)


def test_what_is_not_defined_has_no_p():
    broken = RowScores(np.array([[np.nan, 1.0, 0.0]]))
    result = compare_rows(broken, binary("010"))
    assert "n/a" in result["difference"]
    assert result["p"] is result["t"] is None
