"""The minimum detectable difference: held against the noncentral t, the audit's formula, and the runs themselves."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import FarshiftError, evaluate
from farshift.benchmarks.comparison.run_measures import compute_detectable_difference
from farshift.benchmarks.statistics.detectable import (
    assume_detectable,
    compute_detectable_differences,
    measure_detectable,
    plan_variance,
)
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.variance_estimate import VarianceEstimate
from farshift.splits.audit import minimum_detectable_difference
from scipy import stats


@pytest.mark.parametrize(("df", "within"), [(2, 0.06), (4, 0.012), (10, 0.002), (60, 0.001), (5000, 0.001)])
def test_it_has_eighty_percent_power_by_the_noncentral_t(df, within):
    (result,) = compute_detectable_differences([VarianceEstimate(0.25, df)]) / 0.5
    critical = stats.t.ppf(0.975, df)
    exact = next(nc for nc in np.arange(result - 0.01, 20, 1e-3) if stats.nct.sf(critical, df, nc) >= 0.8)
    assert result == pytest.approx(exact, rel=within, abs=1e-3)


def test_it_is_the_audits_where_rows_are_many():
    for rows in (1000, 20_000):
        assert assume_detectable(rows).value == pytest.approx(minimum_detectable_difference(rows), rel=2e-3)


def test_rows_that_go_together_show_less():
    codes = np.repeat(np.arange(20), 50)
    plain, spread = assume_detectable(1000), assume_detectable(1000, codes)
    assert spread.value / plain.value == pytest.approx((2.0930 + 0.8610) / 2.8043, rel=1e-3)
    assert assume_detectable(1000, np.repeat(np.arange(4), 250)) == plain


def entries(seeds: int, count: int = 6, rows: int = 500) -> dict[str, RowScores]:
    """Entries whose seeds differ by a standard deviation of 0.05 and which agree on rows half of the time."""
    rng = np.random.default_rng(seeds)
    hard = rng.random(rows)
    chances = 0.5 + 0.3 * (hard > 0.5) + 0.05 * rng.standard_normal((count, seeds, 1))
    return {f"e{n}": RowScores((rng.random((seeds, rows)) < item).astype(float)) for n, item in enumerate(chances)}


def test_of_one_part_the_planned_degrees_of_freedom_are_its_own():
    assert plan_variance([VarianceEstimate(3.0, 7)]) == VarianceEstimate(3.0, pytest.approx(7))
    both = plan_variance([VarianceEstimate(1.0, 2), VarianceEstimate(1.0, 2)])
    assert both.variance == 2
    assert 2 < both.df < 4, "an estimate of two seeds' variances is often dominated by one of them"


def test_single_seeds_are_counted_and_their_noise_is_not_in_it():
    result = measure_detectable(entries(1))
    assert (result.pairs, result.single) == (15, 15)
    assert result.low <= result.value <= result.high
    assert measure_detectable(entries(5)).single == 0


def test_more_seeds_show_smaller_differences():
    known = entries(3)
    three, ten = measure_detectable(known, 3), measure_detectable(known, 10)
    assert three == measure_detectable(known)
    assert ten.value < three.value


def test_order_is_of_no_matter_and_a_single_entry_shows_nothing():
    known = entries(3)
    assert measure_detectable(dict(reversed(known.items()))) == measure_detectable(known)
    assert measure_detectable({"e0": known["e0"]}) is None


def test_pairs_of_the_very_same_answers_still_keep_a_difference():
    same = RowScores(np.ones((1, 100)))
    assert 0 < measure_detectable({"a": same, "b": same}).value < 0.1


ON = "modadd97/xi35"


def adder(wrong: int):
    def predict(batch):
        a, b = batch["a"], batch["b"]
        return (a + b + ((a * 31 + b * 17) % 100 < wrong)) % 97

    return predict


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [
        evaluate(adder(wrong), on=ON, budget="quick", seeds=1, name=f"wrong-{wrong}", out=folder / str(wrong))
        for wrong in (40, 20, 10)
    ]


def test_runs_say_what_a_benchmark_shows(runs):
    result = compute_detectable_difference(ON, runs)
    assert (result["runs"], result["ood"]["pairs"], result["ood"]["single"]) == (3, 3, 3)
    assert result["ood"]["low"] <= result["ood"]["value"] <= result["ood"]["high"]
    assert "measured on 3 runs with their own seeds" in result["how"]
    nothing = compute_detectable_difference(ON)
    assert nothing["ood"]["value"] == pytest.approx(minimum_detectable_difference(nothing["ood"]["rows"]), rel=5e-3)
    assert "assumes that two entries disagree on 10% of the rows" in nothing["how"]


def test_a_single_run_or_one_of_another_table_is_refused(runs, tmp_path):
    with pytest.raises(FarshiftError, match="one run is not enough to measure differences"):
        compute_detectable_difference(ON, runs[:1])
    with pytest.raises(FarshiftError, match="these runs are not all on modadd97/xi50 with one protocol"):
        compute_detectable_difference("modadd97/xi50", runs)
    other = evaluate(adder(5), on=ON, budget="quick", steps=7, seeds=1, name="other", out=tmp_path / "other")
    with pytest.raises(FarshiftError, match="with one protocol"):
        compute_detectable_difference(ON, [*runs, other])


def test_what_is_no_share_of_rows_needs_runs():
    result = compute_detectable_difference("linear_unit_test_1/shuffled")
    assert result["ood"]["n/a"] == "cannot be assumed for rmse: name runs to measure it on"
