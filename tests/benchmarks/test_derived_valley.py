"""The generalisation valley: gaps by level, its peak, and when the peak is real."""

from __future__ import annotations

import math

import numpy as np
import pytest
from farshift.benchmarks.derived.valley import Valley, find_valley
from farshift.benchmarks.statistics.interval import NotAvailable, estimate_gap
from farshift.benchmarks.statistics.sample import Replicates, RowScores


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
    nowhere = Replicates([math.nan, math.nan], np.full((2, 4), math.nan), np.full(4, 100), (0.0, 1.0))
    levels = {1: level(400, 390), 2: (nowhere, nowhere), 3: level(390, 100), 4: level(100, 90)}
    result = find_valley(levels)
    assert list(result.gaps) == [1, 3, 4]
    assert result.critical == 3


def test_the_record_holds_every_level():
    resolved: Valley = find_valley({1: level(400, 390), 2: level(400, 100), 3: level(100, 90)})
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
