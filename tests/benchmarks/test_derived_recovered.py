"""Gap recovered: the algebra, Fieller's interval, its guard, and the truth that the interval claims to cover."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.derived.recovered import (
    CONTRASTS,
    Recovered,
    compute_fieller_interval,
    compute_gap_recovered_on_rows,
)
from farshift.benchmarks.statistics.interval import NotAvailable, estimate_mean
from farshift.benchmarks.statistics.sample import Replicates, RowScores
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize, stats


def compute_gap_recovered(values, covariance, df):
    """From the covariance of the three scores, (3, 3)."""
    return compute_fieller_interval(values, CONTRASTS @ covariance @ CONTRASTS.T, df)


def independent(values: tuple[float, float, float], errors: tuple[float, float, float], df: float = 1e6):
    return compute_gap_recovered(np.array(values), np.diag(np.square(errors)), df)


def test_the_vision_example_of_burns_et_al():
    """AlexNet supervises a DINO ResNet-50: 56.6 weak, 64.5 strong, 61.9 weak-to-strong, 67 % recovered."""
    result = independent((0.619, 0.566, 0.645), (0.0, 0.0, 0.0))
    assert round(result.value, 2) == 0.67
    assert result.low == pytest.approx(result.value) == pytest.approx(result.high)


@pytest.mark.parametrize(("x", "value"), [(0.4, 0.0), (0.8, 1.0), (0.9, 1.25), (0.3, -0.25)])
def test_it_is_zero_at_the_floor_one_at_the_ceiling_and_never_cut_off(x, value):
    result = independent((x, 0.4, 0.8), (0.01, 0.01, 0.01))
    assert result.value == pytest.approx(value)
    assert result.low < value < result.high


def test_a_gap_of_less_than_two_standard_errors_is_not_shared_out():
    se = 0.02 / np.sqrt(2)
    for gap, known in ((0.041, True), (0.039, False), (0.0, False), (-0.1, False)):
        result = independent((0.5, 0.5, 0.5 + gap), (se, se, se))
        assert isinstance(result, Recovered) == known
    result = independent((0.5, 0.5, 0.539), (se, se, se))
    assert result == NotAvailable(
        "the ceiling 0.539 is too close to the floor 0.500: a gap of 0.039 with a standard error of 0.020"
    )


def test_with_few_degrees_of_freedom_the_gap_must_be_larger():
    """At df = 2 a ratio's interval is bounded only from 4.3 standard errors of the gap on."""
    se = 0.02 / np.sqrt(2)
    assert isinstance(independent((0.5, 0.5, 0.58), (se, se, se), df=2), NotAvailable)
    assert isinstance(independent((0.5, 0.5, 0.59), (se, se, se), df=2), Recovered)


def test_equal_scores_without_errors_are_no_gap():
    assert isinstance(independent((0.5, 0.5, 0.5), (0.0, 0.0, 0.0)), NotAvailable)


@given(st.floats(0, 1), st.floats(0, 0.4), st.floats(0.6, 1), st.integers(0, 2**32 - 1), st.floats(3, 500))
def test_the_ends_are_where_a_t_test_just_rejects(x, floor, ceiling, seed, df):
    factor = np.random.default_rng(seed).normal(size=(3, 3)) * 0.02
    covariance = factor @ factor.T + 1e-6 * np.eye(3)
    result = compute_gap_recovered(np.array([x, floor, ceiling]), covariance, df)
    assume(isinstance(result, Recovered))

    def p_value(ratio: float) -> float:
        weights = np.array([1, ratio - 1, -ratio])
        return 2 * stats.t.sf(abs(weights @ [x, floor, ceiling]) / np.sqrt(weights @ covariance @ weights), df)

    assert p_value(result.low) == pytest.approx(0.05, rel=1e-5)
    assert p_value(result.high) == pytest.approx(0.05, rel=1e-5)
    assert optimize.brentq(lambda ratio: p_value(ratio) - 0.05, result.value, result.high + 1) == pytest.approx(
        result.high
    )


def test_rows_that_are_hard_for_all_three_narrow_a_paired_interval():
    rng = np.random.default_rng(0)
    hard = rng.uniform(size=(1, 2000))
    shared = [RowScores((hard < p).astype(float)) for p in (0.7, 0.5, 0.8)]
    paired = compute_gap_recovered_on_rows(*shared)
    errors = np.array([estimate_mean(item).row_se for item in shared])
    unpaired = compute_gap_recovered(np.array([estimate_mean(item).value for item in shared]), np.diag(errors**2), 1999)
    assert paired.value == pytest.approx(unpaired.value)
    assert paired.high - paired.low < 0.7 * (unpaired.high - unpaired.low)


@given(st.integers(10, 200), st.integers(0, 2**32 - 1))
def test_the_row_covariance_is_that_of_the_differences(rows, seed):
    """With two rows at the ends of the scale added to each difference, as in every paired difference (`statistics/interval.py`)."""
    rng = np.random.default_rng(seed)
    x, floor, ceiling = ((rng.uniform(size=rows) < p).astype(float) for p in (0.6, 0.2, 0.95))
    result = compute_gap_recovered_on_rows(*(RowScores(item[None]) for item in (x, floor, ceiling)))
    assume(isinstance(result, Recovered))

    def variance(difference: np.ndarray) -> float:
        return np.append(difference, [-1, 1]).var(ddof=1) / (rows + 2)

    gain, gap, rest = variance(x - floor), variance(ceiling - floor), variance(ceiling - x)
    covariance = np.array([[gain, 0, 0], [0, 0, 0], [0, 0, gap]])
    covariance[0, 2] = covariance[2, 0] = (gain + gap - rest) / 2
    oracle = compute_gap_recovered(np.array([x.mean(), floor.mean(), ceiling.mean()]), covariance, rows + 1)
    assert (result.low, result.high) == pytest.approx((oracle.low, oracle.high), rel=1e-6, abs=1e-9)


def test_training_seeds_widen_the_interval():
    rng = np.random.default_rng(1)
    levels = {"x": 0.6, "floor": 0.3, "ceiling": 0.8}

    def models(seed_sd: float) -> list[RowScores]:
        return [
            RowScores((rng.uniform(size=(4, 1000)) < p + seed_sd * np.linspace(-1, 1, 4)[:, None]).astype(float))
            for p in levels.values()
        ]

    calm, wild = compute_gap_recovered_on_rows(*models(0.0)), compute_gap_recovered_on_rows(*models(0.1))
    assert wild.high - wild.low > 3 * (calm.high - calm.low)


def test_statistics_that_are_no_means_are_paired_by_the_rows_left_out():
    rng = np.random.default_rng(2)
    noise = rng.normal(size=20) * 0.01
    sizes = np.full(20, 50)
    shared = [Replicates([p], (p + noise)[None], sizes, (0.0, 1.0)) for p in (0.7, 0.5, 0.8)]
    result = compute_gap_recovered_on_rows(*shared)
    assert result.value == pytest.approx(2 / 3)
    assert result.high - result.low < 1e-6  # the same noise in all three leaves no doubt about their differences


def test_a_score_that_is_not_defined_leaves_nothing_to_share():
    sizes = np.full(20, 50)
    known = [Replicates([p], np.full((1, 20), p), sizes, (0.0, 1.0)) for p in (0.5, 0.8)]
    lost = Replicates([np.nan], np.full((1, 20), np.nan), sizes, (0.0, 1.0))
    for models in ((lost, *known), (*known, lost), (known[0], lost, known[1])):
        assert compute_gap_recovered_on_rows(*models) == NotAvailable(
            "a score is not defined, or not defined on some subsets of the rows"
        )


def test_the_record_holds_the_three_scores():
    result = independent((0.619, 0.566, 0.645), (0.004, 0.004, 0.004))
    record = result.to_dict()
    assert list(record) == ["value", "low", "high", "x", "floor", "ceiling"]
    assert (record["value"], record["x"], record["floor"], record["ceiling"]) == (0.670886, 0.619, 0.566, 0.645)


@pytest.mark.parametrize(("ceiling", "df"), [(0.62, 200.0), (0.8, 30.0), (0.9, 8.0)])
def test_fiellers_interval_covers_the_true_share(ceiling, df):
    """1000 experiments: the Monte Carlo error of 95 % is 0.7 points; the narrowest gap has 6 standard errors. The
    errors of few degrees of freedom are estimates themselves."""
    rng = np.random.default_rng(3)
    truth, se = np.array([0.55, 0.5, ceiling]), 0.02 / np.sqrt(2)
    covered = available = 0
    for _ in range(1000):
        scale = rng.chisquare(df) / df
        result = compute_gap_recovered(rng.normal(truth, se), np.eye(3) * se**2 * scale, df)
        if isinstance(result, Recovered):
            available += 1
            covered += result.low <= (truth[0] - truth[1]) / (truth[2] - truth[1]) <= result.high
    assert available > 950
    assert 0.935 <= covered / available <= 0.965


@pytest.mark.parametrize(("seeds", "seed_sd"), [(1, 0.0), (5, 0.03)])
def test_the_paired_interval_covers_the_true_share(seeds, seed_sd):
    """400 experiments: the Monte Carlo error of 95 % is 1.1 points."""
    rng = np.random.default_rng(seeds)
    covered = 0
    for _ in range(400):
        hard = rng.uniform(-0.2, 0.2, (1, 300))
        models = [
            RowScores(
                (rng.uniform(size=(seeds, 300)) < p + hard + seed_sd * rng.standard_normal((seeds, 1))).astype(float)
            )
            for p in (0.6, 0.3, 0.75)
        ]
        result = compute_gap_recovered_on_rows(*models)
        covered += result.low <= 0.3 / 0.45 <= result.high
    assert covered / 400 >= 0.93
    assert seeds > 1 or covered / 400 <= 0.97
