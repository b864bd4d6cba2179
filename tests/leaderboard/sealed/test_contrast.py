"""The difference between public and sealed rows: right under chance, and quick to see a test that was learnt."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.statistics.sample import Replicates, RowScores
from farshift.leaderboard.sealed.results import estimate_cell_variance, estimate_difference, flag_contrasts
from hypothesis import given
from hypothesis import strategies as st

CELLS, EACH, SEEDS = 12, 20, 3
NAMES = [f"severity {cell}" for cell in range(CELLS) for _ in range(EACH)]


def trial(generator: np.random.Generator, learnt: float = 0.0) -> dict[str, object]:
    """One entry: cells of very different difficulty, seeds that differ, rows that all seeds find hard; of the public
    rows a share `learnt` is known by heart."""
    skill = np.linspace(0.95, 0.15, CELLS).repeat(EACH)
    shift = generator.normal(0, 0.05, (SEEDS, 1))
    samples = []
    for known in (learnt, 0.0):
        hard = generator.normal(0, 0.2, len(skill))
        right = generator.random((SEEDS, len(skill))) < np.clip(skill + hard + shift, 0, 1)
        samples.append(RowScores((right | (generator.random(len(skill)) < known)).astype(float)))
    return estimate_difference(samples, [NAMES, NAMES])


def test_the_interval_covers_no_difference_and_the_test_has_its_size():
    generator = np.random.Generator(np.random.PCG64(7))
    result = [trial(generator) for _ in range(500)]
    covered = np.mean([item["low"] <= 0 <= item["high"] for item in result])
    rejected = np.mean([item["p"] < 0.05 for item in result])
    assert 0.92 <= covered <= 0.975
    assert 0.025 <= rejected <= 0.08
    assert all(
        (item["p"] < 0.05) == (not item["low"] <= 0 <= item["high"]) for item in result if abs(item["p"] - 0.05) > 1e-4
    )


def test_a_fifth_of_the_public_rows_learnt_by_heart_is_seen():
    generator = np.random.Generator(np.random.PCG64(8))
    result = [trial(generator, learnt=0.2) for _ in range(200)]
    assert np.mean([item["low"] > 0 for item in result]) > 0.6


def test_cells_of_different_difficulty_are_no_noise():
    generator = np.random.Generator(np.random.PCG64(9))
    scores = RowScores((generator.random((1, len(NAMES))) < np.linspace(1, 0, len(NAMES))).astype(float))
    apart, together = estimate_cell_variance(scores, NAMES), estimate_cell_variance(scores, ["all"] * len(NAMES))
    assert apart.variance < 0.8 * together.variance
    assert apart.df == len(NAMES) - CELLS
    assert together.variance == pytest.approx(scores.spread().variance, rel=1e-9)


def test_a_score_of_one_keeps_a_width():
    certain = RowScores(np.ones((2, len(NAMES))))
    result = estimate_difference([certain, certain], [NAMES, NAMES])
    assert result["low"] < 0 == result["value"] < result["high"]


def test_rows_that_each_are_a_cell_are_taken_as_independent():
    scores = RowScores(np.array([[1.0, 0.0, 1.0, 1.0]]))
    assert estimate_cell_variance(scores, list("abcd")) == scores.spread()


def test_a_metric_that_is_no_mean_of_rows_has_the_jackknifes_variance():
    sample = Replicates([0.5, 0.7], np.array([[0.4, 0.6, 0.5], [0.7, 0.6, 0.8]]), np.array([5, 5, 5]), (0.0, 1.0))
    assert estimate_cell_variance(sample, NAMES[:15]) == sample.pooled().spread()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.booleans())
def test_flags_are_those_of_holms_correction_and_say_which_side_is_better(p_values, higher_is_better):
    better = "higher" if higher_is_better else "lower"
    contrasts = [{"id": {"value": 0.1, "p": p, "better": better}, "ood": {"n/a": "none"}} for p in p_values]
    output = flag_contrasts(contrasts)
    order = np.argsort(p_values, kind="stable")
    running = 0.0
    for rank, position in enumerate(order):
        running = max(running, min(1.0, (len(p_values) - rank) * p_values[position]))
        assert output[position]["id"]["p_holm"] == pytest.approx(running, abs=1e-6)
        expected = f"{'better' if higher_is_better else 'worse'} on public" if running < 0.05 else ""
        assert output[position]["id"]["flag"] == expected
        assert output[position]["ood"] == {"n/a": "none"}
    assert "p_holm" not in contrasts[0]["id"]
