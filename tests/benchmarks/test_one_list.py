"""Forged validation predictions are found; honest ones are not taken for forged more often than is stated."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.statistics.one_list import ALARM, mismatch
from farshift.benchmarks.statistics.sample import RowScores

SEEDS, CANDIDATES = 3, 6


def measured(source, shares, rows: int, shift: float = 0.0) -> list[RowScores]:
    """Candidates that have these shares of rows right; hard rows are hard for all."""
    hard = source.random(rows)
    own = [0.5 * hard + 0.5 * source.random((SEEDS, rows)) for _ in shares]
    return [RowScores((one < share + shift).astype(float)) for one, share in zip(own, shares, strict=True)]


@pytest.mark.parametrize("rows", [40, 400])
def test_honest_candidates_are_not_found_odd(rows):
    """Of 60 runs, whose ID test is harder for all candidates, none: an alarm a thousand runs is stated."""
    source = np.random.default_rng(1)
    shares = np.linspace(0.3, 0.7, CANDIDATES)
    odd = [
        mismatch(measured(source, shares, rows), measured(source, shares, 500, shift=-0.05)) is not None
        for _ in range(60)
    ]
    assert sum(odd) == 0, f"at most {ALARM:.1%} may be"


@pytest.mark.parametrize("forged", [1.0, 0.0])
def test_a_candidate_that_was_made_better_or_worse_on_validation_rows_is_named(forged):
    source = np.random.default_rng(2)
    shares = np.linspace(0.45, 0.6, CANDIDATES)
    validation, test = measured(source, shares, 200), measured(source, shares, 400)
    assert mismatch(validation, test) is None
    validation[4].scores[1] = forged
    found = mismatch(validation, test)
    assert found is not None
    assert (found.seed, found.candidate) == (1, 4)
    assert found.p < ALARM
    assert (found.validation > found.test) == bool(forged)


def test_all_but_one_candidate_made_worse_is_found():
    source = np.random.default_rng(3)
    shares = np.full(CANDIDATES, 0.5)
    validation, test = measured(source, shares, 300), measured(source, shares, 400)
    for k in (0, 1, 2, 4, 5):
        validation[k].scores[:] *= source.random(validation[k].scores.shape) < 0.5
    assert mismatch(validation, test) is not None


def test_a_single_candidate_was_not_chosen():
    source = np.random.default_rng(4)
    assert mismatch(measured(source, [0.9], 100), measured(source, [0.1], 100)) is None
