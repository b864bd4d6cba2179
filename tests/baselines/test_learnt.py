"""Recorded results that say nothing of a shift are marked, by one rule: what was not learnt in distribution."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farshift.baselines.running.recorded_scores import (
    RecordedScore,
    find_undertrained,
    make_trained_check,
    read_recorded_scores,
)

ON = "scan/length"


@pytest.fixture(scope="module")
def kept() -> dict[str, RecordedScore]:
    return read_recorded_scores(ON)


def with_seeds(one: RecordedScore, *scores: float, gap: float = 0.2) -> RecordedScore:
    mean = sum(scores) / len(scores)
    there = replace(one.gap, value=gap, low=gap - 0.1, high=gap + 0.1)
    return replace(one, seeds=tuple(range(len(scores))), id=replace(one.id, value=mean, per_seed=scores), gap=there)


def test_what_does_not_fit_short_commands_is_marked_with_its_reason(kept):
    marked = find_undertrained(ON, kept)
    assert {"transformer-randomised", "transformer-alibi", "universal-transformer", "most-frequent"} <= set(marked)
    assert not {"lstm", "transformer", "gru"} & set(marked)
    assert marked["transformer-randomised"].startswith(
        "seed 4 scores 0.0112 on ID, less than half way from a constant prediction"
    )


def test_one_seed_that_is_not_past_half_way_and_a_gap_mark_a_result(kept):
    rule = make_trained_check(
        ON, {"a": with_seeds(kept["lstm"], 0.9, 0.9), "most-frequent": with_seeds(kept["lstm"], 0.1, 0.1)}
    )
    assert (rule.floor, rule.best, rule.least) == pytest.approx((0.1, 0.9, 0.5))
    assert rule.reason(with_seeds(kept["lstm"], 0.51, 0.9)) == ""
    assert rule.reason(with_seeds(kept["lstm"], 0.9, 0.49)).startswith("seed 1 scores 0.49 on ID, less than half way")
    assert rule.reason(with_seeds(kept["lstm"], 0.5, 0.9)).startswith("seed 0 scores 0.5 on ID, less than half way")
    assert rule.reason(with_seeds(kept["lstm"], 0.49, 0.9, gap=0.05)) == "", "it loses nothing that one could see"
    assert "no better than a constant prediction" in rule.reason(with_seeds(kept["lstm"], 0.1, 0.9, gap=0.0))


def test_an_algorithm_that_gives_up_the_misleading_half_is_not_marked():
    marked = find_undertrained("colored_mnist_irm/color")
    assert "irm" not in marked
    assert {"iga", "most-frequent"} <= set(marked)


def test_nothing_is_marked_where_nothing_is_better_than_a_constant_answer(kept):
    assert make_trained_check(ON, {}) is None
    constant = {"most-frequent": with_seeds(kept["lstm"], 0.0, 0.0)}
    assert make_trained_check(ON, constant) is None
    assert find_undertrained(ON, constant) == {}
