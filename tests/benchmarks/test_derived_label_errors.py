"""Label-error detection: against scikit-learn and brute force, ties and all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from farshift.benchmarks.derived.label_errors import compute_f1_at_noise_rate, estimate_label_error_detection
from farshift.benchmarks.statistics.interval import NotAvailable
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

GROUPS = 10


def detection(doubt: np.ndarray, corrupted: np.ndarray, groups: int = GROUPS):
    return estimate_label_error_detection(doubt, corrupted, np.arange(len(corrupted)) % groups)


def noisy_doubt(seeds: int, rows: int, seed: int = 0, apart: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """A fifth of the labels are corrupted, and doubted more by `apart` standard deviations."""
    rng = np.random.default_rng(seed)
    corrupted = rng.uniform(size=rows) < 0.2
    return rng.normal(size=(seeds, rows)) + apart * corrupted, corrupted


def test_all_three_are_means_over_seeds_of_scikit_learns():
    doubt, corrupted = noisy_doubt(3, 500)
    result = detection(doubt, corrupted)
    flags = [row >= np.sort(row)[-corrupted.sum()] for row in doubt]
    for estimate, each in (
        (result.auroc, [roc_auc_score(corrupted, row) for row in doubt]),
        (result.average_precision, [average_precision_score(corrupted, row) for row in doubt]),
        (result.f1, [f1_score(corrupted, flag) for flag in flags]),
    ):
        assert estimate.per_seed == pytest.approx(each)
        assert estimate.value == pytest.approx(np.mean(each))
        assert estimate.low < estimate.value < estimate.high
        assert (estimate.rows, estimate.seeds) == (500, 3)


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=9))
def test_f1_is_the_mean_over_all_ways_to_break_ties(rows):
    doubt, corrupted = np.array([item for item, _ in rows], float), np.array([bad for _, bad in rows])
    count = int(corrupted.sum())
    assume(count)
    best = sorted(doubt.tolist())[-count:]
    choices = [list(c) for c in combinations(range(len(rows)), count) if sorted(doubt[list(c)].tolist()) == best]
    brute = np.mean([f1_score(corrupted, np.isin(np.arange(len(rows)), choice)) for choice in choices])
    assert compute_f1_at_noise_rate({"doubt": doubt, "corrupted": corrupted}) == pytest.approx(brute)


@given(st.integers(0, 2**32 - 1))
def test_only_the_order_of_doubt_counts(seed):
    rng = np.random.default_rng(seed)
    doubt, corrupted = rng.integers(0, 30, (2, 60)) / 30, rng.uniform(size=60) < 0.3
    assume(5 < corrupted.sum() < 55)
    assert detection(doubt, corrupted) == detection(np.exp(5 * doubt) - 7, corrupted)


def test_the_smallest_probabilities_are_told_apart():
    """Their complements are not, in 32 bits: 1 - 1e-9 is 1."""
    corrupted = np.arange(100) % 4 == 0
    given = np.where(corrupted, 1e-12, 1e-9).astype(np.float32)[None]
    result = detection(-given, corrupted)
    assert result.auroc.value == result.average_precision.value == result.f1.value == 1
    assert detection(1 - given, corrupted).auroc.value == 0.5


def test_perfect_detection_keeps_a_width_that_the_rarer_rows_decide():
    reach = []
    for rare in (10, 100):
        corrupted = np.arange(1000) < rare
        auroc = estimate_label_error_detection(corrupted[None] * 1.0, corrupted, np.arange(1000) % GROUPS).auroc
        assert auroc.value == auroc.high == 1
        reach.append(1 - auroc.low)
    assert reach[0] > 5 * reach[1] > 0


@pytest.mark.parametrize(("share", "word"), [(0, "no"), (1, "every")])
def test_without_both_sorts_of_label_there_is_nothing_to_find(share, word):
    result = detection(np.zeros((1, 8)), np.full(8, bool(share)))
    reason = f"{word} label is corrupted: label errors cannot be ranked"
    assert result.auroc == result.average_precision == result.f1 == NotAvailable(reason)
    assert result.to_dict()["f1"] == {"n/a": reason}


def test_rows_in_one_group_give_no_interval():
    doubt, corrupted = noisy_doubt(1, 50)
    assert detection(doubt, corrupted, groups=1).f1 == NotAvailable("all rows are in one group: no interval")


def test_corrupted_labels_in_one_group_leave_no_interval():
    corrupted = np.arange(40) % GROUPS == 3
    result = detection(np.linspace(0, 1, 40)[None], corrupted)
    assert "not defined on some subsets" in result.auroc.reason


def test_the_record_is_plain():
    doubt, corrupted = noisy_doubt(2, 200)
    record = detection(doubt, corrupted).to_dict()
    assert list(record) == ["auroc", "average_precision", "f1"]
    assert all(item["rows"] == 200 and item["seeds"] == 2 for item in record.values())


def test_the_interval_of_auroc_covers_the_truth():
    """250 experiments: the Monte Carlo error of 95 % is 1.4 points."""
    from scipy.stats import norm

    truth = norm.cdf(1 / np.sqrt(2))
    covered = 0
    for seed in range(250):
        doubt, corrupted = noisy_doubt(1, 300, seed, apart=1.0)
        result = estimate_label_error_detection(doubt, corrupted, np.arange(300) % 20).auroc
        covered += result.low <= truth <= result.high
    assert 0.92 <= covered / 250 <= 0.975
