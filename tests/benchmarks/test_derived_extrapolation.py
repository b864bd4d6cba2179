"""Area under the severity curve, the severity of half the skill, and the generalisation valley with its peak."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.derived.extrapolation import (
    Curve,
    estimate_extrapolation,
    find_fall_to_half,
    find_valley,
    fit_isotonic,
    tally_curve,
)
from farshift.benchmarks.statistics.interval import Estimate, NotAvailable, estimate_gap
from farshift.benchmarks.statistics.sample import Replicates, RowScores
from farshift.benchmarks.statistics.variance_estimate import (
    estimate_half_sample_variance,
    estimate_jackknife_variance,
    make_balanced_halves,
)
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate
from sklearn.isotonic import IsotonicRegression


def curve_of(means: dict[float, float], rows: int = 100, inside: float = 0.0, seeds: int = 1, groups: int = 20):
    """The extrapolation of a model that is right on exactly these shares of `rows` rows a severity; the severities up
    to `inside` are in-distribution."""
    severity = np.repeat(list(means), rows)
    right = np.concatenate([np.arange(rows) < round(share * rows) for share in means.values()])
    scores = np.tile(right.astype(float), (seeds, 1))
    dealt = np.random.default_rng(0).permutation(len(severity)) % groups
    return estimate_extrapolation(severity, scores, severity <= inside, dealt)


def test_a_curve_by_hand():
    result = curve_of({1: 1.0, 3: 0.8, 4: 0.2}, inside=1)
    assert result.area.value == pytest.approx((2 * 0.9 + 1 * 0.5) / 3)
    assert result.half.value == pytest.approx(3.5)  # half of 1.0 lies midway between 0.8 and 0.2
    assert (result.level, result.first, result.last) == (1.0, 1.0, 4.0)
    assert result.area.low < result.area.value < result.area.high
    assert result.half.low < 3.5 < result.half.high


def test_half_is_half_of_the_in_distribution_level():
    assert curve_of({1: 0.8, 2: 0.6, 3: 0.2}, inside=1).half.value == pytest.approx(2.5)
    assert curve_of({1: 0.8, 2: 0.6, 3: 0.2}, inside=2).half.value == pytest.approx(2 + 0.25 / 0.4)


def test_one_noisy_severity_does_not_decide():
    smooth = curve_of({1: 1.0, 2: 0.9, 3: 0.8, 4: 0.7, 5: 0.6, 6: 0.1}, inside=1).half.value
    dip = curve_of({1: 1.0, 2: 0.9, 3: 0.45, 4: 0.9, 5: 0.6, 6: 0.1}, inside=1).half.value
    assert smooth == pytest.approx(5.2)
    assert dip == pytest.approx(5.2)


@pytest.mark.parametrize("plateau", [0.3, 0.1 + 0.2, 0.3 - 1e-16])
def test_a_plateau_at_half_counts_from_its_beginning_whatever_the_rounding(plateau):
    severity, score = np.array([1.0, 2, 4, 5, 6]), np.array([0.6, 0.5, plateau, plateau, 0.1])
    fall = find_fall_to_half(Curve(severity, score, np.full(5, 10), 0.6, 10))
    assert fall[0] == pytest.approx(4)


@pytest.mark.parametrize(
    ("means", "reason"),
    [
        ({1: 1.0, 2: 0.9, 48: 0.61}, "never falls to half: 0.610 at the last severity, 48"),
        ({1: 0.0, 2: 0.0}, "the in-distribution score is 0, so half of it is not defined"),
        ({5: 0.9, 6: 0.8}, "no row is in-distribution"),
        ({1: 1.0, 2: 0.9, 3: 0.49}, "2.97561 on all rows and seeds, but not defined on some subsets: no interval"),
    ],
)
def test_where_there_is_no_half_or_some_rows_decide_it_the_reason_is_said(means, reason):
    assert curve_of(means, inside=1).half.to_dict() == {"n/a": reason}


def test_a_curve_that_is_nowhere_above_half_has_no_fall():
    severity, last = np.repeat([1.0, 2.0], 50), np.arange(100) == 99
    half = estimate_extrapolation(severity, (severity == 2)[None].astype(float), last, np.arange(100) % 9).half
    assert half == NotAvailable("never above half: 0.500 at the first severity, 1")


def test_a_single_severity_is_no_curve():
    result = curve_of({7: 0.5}, inside=7)
    assert result.area == NotAvailable("every row has severity 7")
    assert result.to_dict()["from"] == result.to_dict()["to"] == 7


def test_rows_in_one_group_give_no_interval():
    result = curve_of({1: 1.0, 2: 0.0}, inside=1, groups=1)
    assert result.area == result.half == NotAvailable("all rows are in one group: no interval")


def test_a_perfect_model_that_breaks_at_once_keeps_a_width():
    result = curve_of({1: 1.0, 2: 1.0, 4: 0.0, 5: 0.0}, inside=2)
    assert result.half.value == 3
    assert 0.005 < result.half.high - result.half.low < 0.1
    always = curve_of({1: 1.0, 2: 1.0, 4: 1.0}, inside=1)
    assert always.area.value == always.area.high == 1
    assert 0.98 < always.area.low < 0.999


def test_the_record_is_plain_and_rounded():
    record = curve_of({1: 1.0, 3: 2 / 3, 4: 0.2}, rows=99, inside=1, seeds=2).to_dict()
    assert list(record) == ["area", "half", "level", "from", "to"]
    assert record["area"]["rows"] == 297
    assert record["area"]["seeds"] == len(record["half"]["per_seed"]) == 2
    assert record["area"]["value"] == round((2 * (1 + 2 / 3) / 2 + (2 / 3 + 20 / 99) / 2) / 3, 6)


def test_a_seed_that_never_falls_leaves_the_values_by_seed_out():
    severity = np.repeat([1.0, 2.0, 3.0], 90)
    scores = np.tile((severity < 2.5).astype(float), (6, 1))
    scores[0] = 1.0
    half = estimate_extrapolation(severity, scores, severity == 1, np.arange(270) % 16).half
    assert half.per_seed == ()
    assert half.seed_se > 0


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=1, max_size=40))
def test_the_fit_is_scikit_learns(points):
    score, rows = np.array(points, np.float64).T
    fit, weights = fit_isotonic(score, rows.astype(np.int64))
    oracle = IsotonicRegression(increasing=False).fit_transform(np.arange(len(score)), score, sample_weight=rows)
    assert fit == pytest.approx(oracle, abs=1e-9)
    for value in np.unique(fit):
        assert set(weights[fit == value]) == {rows[fit == value].sum()}


@given(st.data(), st.integers(2, 40), st.integers(1, 4))
def test_the_area_is_scipys_trapezoid_over_the_means(data, rows, seeds):
    severity = np.array(data.draw(st.lists(st.integers(0, 12), min_size=rows, max_size=rows)), np.float64)
    scores = np.random.default_rng(rows * seeds).integers(0, 2, (seeds, rows)).astype(float)
    values = np.unique(severity)
    area = estimate_extrapolation(severity, scores, severity < 3, np.arange(rows)).area
    if len(values) == 1:
        assert isinstance(area, NotAvailable)
        return
    means = [scores[:, severity == value].mean() for value in values]
    value = integrate.trapezoid(means, values) / (values[-1] - values[0])
    if isinstance(area, Estimate):
        assert area.value == pytest.approx(value)
        assert np.mean(area.per_seed) == pytest.approx(value)
    else:
        assert 1 in np.unique(severity, return_counts=True)[1]


def test_many_severities_are_joined_and_all_rows_stay():
    rng = np.random.default_rng(2)
    severity = np.concatenate([rng.normal(size=900), np.full(100, 0.5)])
    scores = rng.integers(0, 2, (2, 1000)).astype(float)
    curve = tally_curve(severity, scores, severity < 0, np.arange(1000) % 10, most=20).curve()
    assert len(curve.severity) <= 20
    assert curve.rows.sum() == 1000
    assert curve.rows.max() <= 150
    assert (np.diff(curve.severity) > 0).all()
    assert (curve.severity * curve.rows).sum() == pytest.approx(severity.sum())
    assert (curve.score * curve.rows).sum() == pytest.approx(scores.mean(axis=0).sum())
    assert curve.level == pytest.approx(scores[:, severity < 0].mean())


def test_one_row_far_out_does_not_stretch_a_continuous_severity():
    severity = np.append(np.linspace(0, 10, 999), 1000.0)
    scores = (severity < 5)[None].astype(float)
    result = estimate_extrapolation(severity, scores, severity < 2, np.arange(1000) % 20)
    assert result.last < 210
    assert result.half.value == pytest.approx(5, abs=0.5)


@pytest.mark.parametrize("groups", [2, 3, 8, 20, 50])
def test_half_samples_are_balanced(groups):
    halves = make_balanced_halves(groups)
    order = len(halves) // 2 + 1
    assert order <= groups < 2 * order
    assert (halves[: order - 1] == ~halves[order - 1 :]).all()
    assert (halves[:, :order].sum(axis=1) == order // 2).all()
    signs = np.where(halves[: order - 1, :order], 1, -1)
    assert (signs @ signs.T == order * np.eye(order - 1)).all()


@pytest.mark.parametrize("groups", [4, 16, 32])
def test_of_a_mean_half_samples_and_groups_left_out_say_the_same(groups):
    by_group = np.random.default_rng(1).normal(size=groups)
    halves, sizes = make_balanced_halves(groups), np.full(groups, 7)
    value = by_group.mean()
    spread = estimate_half_sample_variance(value, np.array([by_group[half].mean() for half in halves]), halves, sizes)
    without = (by_group.sum() - by_group) / (groups - 1)
    left_out = estimate_jackknife_variance(value, without, sizes)
    assert spread.variance == pytest.approx(by_group.var(ddof=1) / groups)
    assert (spread.variance, spread.df) == pytest.approx((left_out.variance, left_out.df))


def accuracy(severity: np.ndarray, shift: float | np.ndarray = 0.0) -> np.ndarray:
    return 0.97 / (1 + np.exp((severity - 15 - shift) / 3))


@pytest.mark.parametrize(("levels", "seeds", "seed_sd"), [(10, 1, 0.0), (30, 1, 0.0), (30, 3, 1.0), (3000, 1, 0.0)])
def test_the_intervals_cover_the_truth(levels, seeds, seed_sd):
    """200 experiments each of 800 rows; the Monte Carlo error of 95 % is 1.5 points. The deviation of seeds along the
    severity axis moves the true half, and hardly the area."""
    grid = np.linspace(1, 30, levels)
    truth = accuracy(grid)
    area = np.trapezoid(truth, grid) / 29
    half = np.interp(-truth[grid <= 10].mean() / 2, -truth, grid)
    rng = np.random.default_rng(levels + seeds)
    covered = np.zeros(2)
    for _ in range(200):
        severity = grid[rng.integers(0, levels, 800)]
        shift = seed_sd * rng.standard_normal((seeds, 1))
        scores = (rng.uniform(size=(seeds, 800)) < accuracy(severity, shift)).astype(float)
        result = estimate_extrapolation(severity, scores, severity <= 10, rng.permutation(800) % 20)
        covered += [result.area.low <= area <= result.area.high, result.half.low <= half <= result.half.high]
    assert (covered / 200 >= 0.915).all()


def level(right_id: int, right_ood: int, rows: int = 400, seeds: int = 2) -> tuple[RowScores, RowScores]:
    """ID and OOD rows of one level, of which so many are right, by every seed."""
    id_scores, ood_scores = (np.tile(np.arange(rows) < right, (seeds, 1)) * 1.0 for right in (right_id, right_ood))
    return RowScores(id_scores), RowScores(ood_scores)


def test_the_critical_complexity_is_the_level_of_the_largest_gap():
    levels = {3: level(300, 120), 1: level(400, 390), 2: level(380, 300), 4: level(60, 40)}
    result = find_valley(levels)
    assert list(result.gaps) == [1, 2, 3, 4]
    assert [estimate.value for estimate in result.gaps.values()] == pytest.approx([0.025, 0.2, 0.45, 0.05])
    assert result.gaps[3] == estimate_gap(*levels[3])
    assert (result.peak, result.critical, result.resolved, result.bracketed) == (3, 3, True, True)


def test_a_gap_below_zero_is_kept():
    result = find_valley({1: level(200, 260), 2: level(200, 300), 3: level(200, 380)})
    assert [estimate.value for estimate in result.gaps.values()] == pytest.approx([-0.15, -0.25, -0.45])
    assert result.peak == 1


def test_a_peak_whose_interval_meets_another_is_not_resolved():
    result = find_valley({1: level(200, 190), 2: level(200, 150), 3: level(200, 148), 4: level(200, 195)})
    assert result.gaps[3].low <= result.gaps[2].high
    assert (result.peak, result.resolved) == (3, False)
    assert result.critical == NotAvailable("the peak at 3 does not differ significantly from level 2")


def test_a_peak_at_the_end_is_not_bracketed():
    assert not find_valley({1: level(390, 380), 2: level(380, 300), 3: level(380, 100)}).bracketed
    assert not find_valley({1: level(390, 80), 2: level(380, 300), 3: level(380, 350)}).bracketed


def test_equal_gaps_peak_at_the_lowest_level_and_are_not_resolved():
    result = find_valley({4: level(300, 200), 2: level(300, 200), 3: level(300, 200)})
    assert (result.peak, result.resolved) == (2, False)


def test_fewer_than_three_levels_are_no_valley():
    result = find_valley({1: level(300, 200), 2: level(300, 100)})
    assert (result.peak, result.resolved, result.bracketed) == (None, False, False)
    assert result.critical == NotAvailable("2 levels of complexity have a gap, but a valley requires 3")
    assert len(result.gaps) == 2
    assert find_valley({}).to_dict()["levels"] == []


def test_a_level_whose_score_is_not_defined_is_left_out():
    nowhere = Replicates([np.nan, np.nan], np.full((2, 4), np.nan), np.full(4, 100), (0.0, 1.0))
    levels = {1: level(400, 390), 2: (nowhere, nowhere), 3: level(390, 100), 4: level(100, 90)}
    result = find_valley(levels)
    assert list(result.gaps) == [1, 3, 4]
    assert result.critical == 3


def test_the_record_holds_every_level():
    resolved = find_valley({1: level(400, 390), 2: level(400, 100), 3: level(100, 90)})
    record = resolved.to_dict()
    assert [item["level"] for item in record["levels"]] == [1, 2, 3]
    assert record["levels"][1]["gap"] == resolved.gaps[2].to_dict()
    assert {name: record[name] for name in ("peak", "resolved", "bracketed", "critical")} == {
        "peak": 2,
        "resolved": True,
        "bracketed": True,
        "critical": 2,
    }
    unresolved = find_valley({1: level(300, 200), 2: level(300, 200), 3: level(300, 200)}).to_dict()
    assert unresolved["critical"] == {"n/a": "the peak at 1 does not differ significantly from level 2"}


def test_equal_levels_are_seldom_resolved():
    """150 simulated valleys without a peak: noise alone resolves far fewer than 5 % of them."""
    rng = np.random.default_rng(4)
    resolved = 0
    for _ in range(150):
        levels = {
            float(number): tuple(RowScores((rng.uniform(size=(1, 100)) < p).astype(float)) for p in (0.8, 0.5))
            for number in range(6)
        }
        resolved += find_valley(levels).resolved
    assert resolved <= 3
