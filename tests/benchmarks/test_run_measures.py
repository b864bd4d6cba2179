"""Measures of runs: detectable differences and sources of variation."""

from __future__ import annotations

import warnings

import farshift as fs
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
from farshift.benchmarks.statistics.sample import Replicates, RowScores
from farshift.benchmarks.statistics.variance_estimate import VarianceEstimate
from farshift.benchmarks.statistics.variation import estimate_components, estimate_variation
from farshift.cli import app
from farshift.splits.audit import minimum_detectable_difference
from scipy import stats
from typer.testing import CliRunner


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


TRUE = {"clusters": 0.5, "rows": 1.0, "seeds": 0.2, "rows_by_seeds": 2.0}


def simulate(rng: np.random.Generator, seeds: int, sizes: np.ndarray, true: dict[str, float] = TRUE) -> np.ndarray:
    """Scores (seeds, n) on clusters of these sizes."""

    def effect(variance: float, shape: tuple[int, ...]) -> np.ndarray:
        return np.sqrt(variance) * rng.standard_normal(shape)

    n = int(sizes.sum())
    rows = np.repeat(effect(true["clusters"], (len(sizes),)), sizes) + effect(true["rows"], (n,))
    return rows + effect(true["seeds"], (seeds, 1)) + effect(true["rows_by_seeds"], (seeds, n))


def test_components_are_found_without_bias():
    rng, sizes = np.random.default_rng(0), np.linspace(2, 18, 12).round().astype(int)
    clusters = np.repeat(np.arange(12), sizes)
    result = [estimate_components(simulate(rng, 4, sizes), clusters) for _ in range(400)]
    for name, tolerance in (("clusters", 0.05), ("rows", 0.03), ("seeds", 0.03), ("rows_by_seeds", 0.01)):
        assert np.mean([item[name] for item in result]) == pytest.approx(TRUE[name], abs=tolerance), name


def mean_squares(scores: np.ndarray, clusters: np.ndarray) -> dict[str, float]:
    """The textbook's analysis of variance, term by term, for equal clusters."""
    seeds, n = scores.shape
    names = np.unique(clusters)
    size = n // len(names)
    grand = scores.mean()
    left_over = row = between = 0.0
    for i in range(n):
        row += seeds * (scores[:, i].mean() - scores[:, clusters == clusters[i]].mean()) ** 2
        for s in range(seeds):
            left_over += (scores[s, i] - scores[:, i].mean() - scores[s].mean() + grand) ** 2
    for item in names:
        between += seeds * size * (scores[:, clusters == item].mean() - grand) ** 2
    e = left_over / ((n - 1) * (seeds - 1))
    r = row / (n - len(names))
    c = between / (len(names) - 1)
    s = n * sum((scores[k].mean() - grand) ** 2 for k in range(seeds)) / (seeds - 1)
    return {"clusters": (c - r) / (seeds * size), "rows": (r - e) / seeds, "seeds": (s - e) / n, "rows_by_seeds": e}


def test_equal_clusters_are_the_textbooks_analysis_of_variance():
    rng = np.random.default_rng(4)
    clusters = np.repeat(np.arange(8), 5)
    scores = simulate(rng, 3, np.full(8, 5), TRUE | {"clusters": 3.0, "seeds": 1.0})
    expected, result = mean_squares(scores, clusters), estimate_components(scores, clusters)
    assert min(expected.values()) > 0
    assert result == pytest.approx(expected, rel=1e-9)


def test_a_mixed_model_fitted_by_statsmodels_agrees():
    """REML and the analysis of variance are the same for balanced data whose components are all above zero."""
    mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    rng = np.random.default_rng(9)
    scores = simulate(rng, 3, np.full(40, 5), {"clusters": 1.0, "rows": 1.0, "seeds": 0.0, "rows_by_seeds": 0.5})
    means = scores.mean(axis=0)
    clusters = np.repeat(np.arange(40), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = mixed.MixedLM(means, np.ones(200), clusters).fit(reml=True)
    result = estimate_components(scores, clusters)
    assert result["clusters"] == pytest.approx(float(fit.cov_re[0, 0]), rel=1e-3)
    assert result["rows"] + result["rows_by_seeds"] / 3 == pytest.approx(float(fit.scale), rel=1e-3)


def test_what_is_not_there_is_zero_and_what_cannot_be_known_none():
    same = np.tile(np.arange(10.0), (3, 1))
    variance = pytest.approx(np.var(np.arange(10.0), ddof=1))
    assert estimate_components(same) == {"clusters": None, "rows": variance, "seeds": 0.0, "rows_by_seeds": 0.0}
    assert estimate_variation(RowScores(same)).components["rows"].share == 1.0
    flat = estimate_variation(RowScores(np.ones((2, 5)), clusters=np.array([0, 0, 1, 1, 1]))).to_dict()
    assert flat["total"] == 0.0
    assert flat["components"]["clusters"] == {"variance": 0.0, "share": 0.0}
    assert estimate_variation(RowScores(np.ones((1, 5)))) is None
    assert estimate_variation(Replicates([0.5, 0.6], np.ones((2, 4)), np.full(4, 3), (0.0, 1.0))) is None


class Noisy:
    """Right on some rows: on more of them by some seeds than by others."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def predict(self, batch):
        pixels = batch["pixels"].astype(int)
        return (pixels.reshape(len(pixels), -1).sum(axis=1) // (40 + 10 * self.seed)) % 10


def test_a_score_tells_its_sources_apart(tmp_path, farshift_json):
    on = "optdigits/symmetric_exclusive_40_draw1"
    run = fs.evaluate(Noisy, on=on, seeds=3, out=tmp_path / "run")
    result, alone = fs.score(run).variation, fs.variation(run)
    for view in ("id", "ood"):
        assert result[view].to_dict()["components"] == alone["views"][view]["components"]
        assert result[view].seeds == 3
        shares = [part.share for part in result[view].components.values() if part]
        assert sum(shares) == pytest.approx(1, abs=1e-5)
    assert farshift_json("compare", run.path, "--statistic", "variance") == alone
    output = CliRunner().invoke(app, ["compare", str(run.path), "--statistic", "variance"]).stdout
    assert "optdigits/symmetric_exclusive_40" in output and "variance of the score of one prediction" in output
    single = fs.evaluate(Noisy, on=on, seeds=1, out=tmp_path / "single")
    with pytest.raises(FarshiftError, match="single seed"):
        fs.variation(single)
