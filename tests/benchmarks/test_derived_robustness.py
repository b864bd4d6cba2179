"""Effective robustness: the line, the distance from it, and an interval that covers the true distance."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.derived.robustness import Point, compute_effective_robustness, fit_line
from farshift.benchmarks.statistics.interval import Estimate, estimate_mean
from farshift.benchmarks.statistics.sample import RowScores
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import special, stats

MANY = 10**9


def on_the_line(ids: list[float], rows: int = MANY) -> list[Point]:
    """Baselines with logit(ood) = -1 + 0.8 logit(id)."""
    return [Point(a, float(special.expit(-1 + 0.8 * special.logit(a))), rows, rows) for a in ids]


def exact(value: float, rows: int = MANY) -> Estimate:
    return Estimate(value, value, value, 0.0, None, rows, 1, (value,))


def noisy(value: float, row_se: float, rows: int = MANY) -> Estimate:
    return Estimate(value, 0.0, 1.0, row_se, None, rows, 1, (value,))


def test_a_line_is_found_again():
    line = fit_line(on_the_line([0.5, 0.7, 0.8, 0.95]))
    assert (line.intercept, line.slope) == pytest.approx((-1, 0.8))
    assert line.scatter == pytest.approx(0, abs=1e-6)
    assert (line.baselines, line.least, line.most) == (4, 0.5, 0.95)


def test_the_value_is_the_distance_above_the_line_in_accuracy():
    line = fit_line(on_the_line([0.5, 0.7, 0.9]))
    for id_accuracy, ood_accuracy in ((0.8, 0.9), (0.8, 0.2), (0.6, 0.5)):
        result = compute_effective_robustness(line, exact(id_accuracy), exact(ood_accuracy))
        expected = special.expit(-1 + 0.8 * special.logit(id_accuracy))
        assert result.expected == pytest.approx(expected)
        assert result.value == pytest.approx(ood_accuracy - expected)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 300)), min_size=3, max_size=12))
def test_the_line_is_scipys_through_the_empirical_logits(right):
    assume(len({a for a, _ in right}) >= 3 and len({b for _, b in right}) > 1)
    line = fit_line([Point(a / 200, b / 300, 200, 300) for a, b in right])
    a, b = np.array(right).T
    oracle = stats.linregress(np.log((a + 0.5) / (200 - a + 0.5)), np.log((b + 0.5) / (300 - b + 0.5)))
    assert (line.intercept, line.slope) == pytest.approx((oracle.intercept, oracle.slope), rel=1e-6, abs=1e-9)
    assert line.variance(0.0) == pytest.approx(oracle.intercept_stderr**2, rel=1e-6, abs=1e-9)
    assert line.variance(line.centre) == pytest.approx(line.scatter**2 / len(right))


def test_fewer_than_three_different_baselines_are_refused():
    for points, output in (
        (on_the_line([0.5, 0.6]), "2 of 2"),
        (on_the_line([0.5, 0.6, 0.6, 0.5]), "2 of 4"),
        ([], "0 of 0"),
    ):
        with pytest.raises(FarshiftError, match=f"^effective robustness: {output} baselines differ .* add baselines$"):
            fit_line(points)


def test_accuracies_of_zero_and_one_enter_with_half_a_row_more():
    line = fit_line([Point(0.0, 0.0, 10, 20), Point(0.5, 0.5, 10, 20), Point(1.0, 1.0, 10, 20)])
    # logit = log(10.5 / 0.5) of 10 rows and log(20.5 / 0.5) of 20.
    assert (line.intercept, line.slope) == pytest.approx((0, np.log(41) / np.log(21)), abs=1e-12)
    result = compute_effective_robustness(line, exact(1.0, rows=10), exact(1.0, rows=20))
    assert result.expected == pytest.approx(20.5 / 21)
    assert np.isfinite([result.low, result.high]).all()


def test_the_row_errors_add_by_the_delta_method():
    line = fit_line(on_the_line([0.5, 0.7, 0.9]))
    by_ood = compute_effective_robustness(line, exact(0.8), noisy(0.7, 0.01))
    assert by_ood.row_se == pytest.approx(0.01)
    step = 1e-5
    slope = (compute_effective_robustness(line, exact(0.8 + step), exact(0.7)).value - by_ood.value) / step
    by_both = compute_effective_robustness(line, noisy(0.8, 0.02), noisy(0.7, 0.01))
    assert by_both.row_se == pytest.approx(np.hypot(0.01, slope * 0.02), rel=1e-3)


def test_few_scattered_baselines_leave_a_wide_interval_with_few_degrees_of_freedom():
    points = [Point(0.5, 0.3, MANY, MANY), Point(0.7, 0.55, MANY, MANY), Point(0.9, 0.6, MANY, MANY)]
    line = fit_line(points)
    result = compute_effective_robustness(line, exact(0.7), exact(0.6))
    assert result.line_se > 0
    assert result.high - result.value == pytest.approx(stats.t.ppf(0.975, 1) * result.line_se, abs=1e-6)


def test_outside_the_baselines_the_line_is_said_to_be_extrapolated():
    line = fit_line([Point(0.5, 0.3, 500, 500), Point(0.7, 0.55, 500, 500), Point(0.9, 0.6, 500, 500)])
    inside, outside = (compute_effective_robustness(line, exact(value), exact(0.6)) for value in (0.7, 0.97))
    assert (inside.extrapolated, outside.extrapolated) == (False, True)
    assert line.variance(special.logit(0.97)) > 2 * line.variance(special.logit(0.7))


def test_a_steep_line_far_out_stays_within_zero_and_one():
    line = fit_line([Point(0.9, 0.01, MANY, MANY), Point(0.9001, 0.5, MANY, MANY), Point(0.9002, 0.99, MANY, MANY)])
    for id_accuracy, expected in ((0.1, 0.0), (0.999, 1.0)):
        assert compute_effective_robustness(line, exact(id_accuracy), exact(0.5)).expected == expected


def test_what_moves_both_accuracies_of_a_seed_cancels():
    line = fit_line(on_the_line([0.5, 0.7, 0.9]))
    ids = (0.75, 0.8, 0.85)
    along = tuple(point.ood for point in on_the_line(list(ids)))
    across = (along[2], along[1], along[0])
    good, bad = (
        compute_effective_robustness(
            line,
            Estimate(0.8, 0, 1, 0.01, 0.03, MANY, 3, ids),
            Estimate(along[1], 0, 1, 0.01, 0.03, MANY, 3, per_seed),
        )
        for per_seed in (along, across)
    )
    assert good.seed_se == pytest.approx(0, abs=1e-7)
    assert bad.seed_se > 0.05


def test_the_record_says_what_the_line_was():
    points = on_the_line([0.5, 0.7, 0.9], rows=1000)
    scores = RowScores((np.arange(500) % 5 > 0)[None].astype(float))
    record = compute_effective_robustness(fit_line(points), estimate_mean(scores), estimate_mean(scores)).to_dict()
    near = {"intercept": pytest.approx(-1, abs=0.01), "slope": pytest.approx(0.8, abs=0.01)}
    assert record["line"] == near | {"scatter": pytest.approx(0, abs=0.01), "baselines": 3}
    assert list(record) == ["value", "low", "high", "row_se", "seed_se", "line_se", "expected", "extrapolated", "line"]
    assert record["seed_se"] is None


@pytest.mark.parametrize(
    ("baselines", "scatter", "rows"), [(4, 0.1, 400), (8, 0.1, 400), (20, 0.0, 400), (6, 0.2, 5000)]
)
def test_the_interval_covers_the_true_distance(baselines, scatter, rows):
    """500 experiments: the Monte Carlo error of 95 % is 1 point. Baselines scatter about the true line, and the
    model's two accuracies are measured on `rows` rows each. With few baselines the interval is somewhat wide."""
    rng = np.random.default_rng(baselines)
    x = np.linspace(-0.5, 2.5, baselines)
    true_id, true_ood = 0.8, 0.75
    truth = true_ood - special.expit(-1 + 0.8 * special.logit(true_id))
    covered = 0
    for _ in range(500):
        ood = special.expit(-1 + 0.8 * x + scatter * rng.standard_normal(baselines))
        line = fit_line([Point(a, b, MANY, MANY) for a, b in zip(special.expit(x), ood, strict=True)])
        samples = (RowScores((rng.uniform(size=(1, rows)) < p).astype(float)) for p in (true_id, true_ood))
        measured = (noisy(item.per_seed[0], np.sqrt(item.spread().variance), rows) for item in samples)
        result = compute_effective_robustness(line, *measured)
        covered += result.low <= truth <= result.high
    assert 0.93 <= covered / 500 <= 0.985
