"""Sources of variation apart: components that were put in are found again."""

from __future__ import annotations

import warnings

import farshift as fs
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.statistics.sample import Replicates, RowScores
from farshift.benchmarks.statistics.variation import estimate_components, estimate_variation
from farshift.cli import app
from typer.testing import CliRunner

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
