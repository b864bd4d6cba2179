"""Recorded results that say nothing of a shift are marked, by one rule: what was not learnt in distribution."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from farshift.baselines.running.recorded_scores import (
    SMOKE,
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


@pytest.mark.parametrize(("scores", "smoke"), [((0.5, 0.54), True), ((0.5, 0.56), False)])
def test_results_are_smoke_runs_where_none_is_half_way_to_a_perfect_score(kept, scores, smoke):
    scores = {f"net {score}": with_seeds(kept["lstm"], score, gap=0.0) for score in scores}
    marked = find_undertrained(ON, scores | {"most-frequent": with_seeds(kept["lstm"], 0.1, gap=0.0)})
    assert set(marked) == ({*scores, "most-frequent"} if smoke else {"most-frequent"})
    assert all(why.startswith(SMOKE) == smoke for why in marked.values())


def test_a_task_is_hard_where_a_model_that_no_budget_shortens_is_as_good_as_the_best(kept):
    scores = {"net": with_seeds(kept["lstm"], 0.54, gap=0.0), "most-frequent": with_seeds(kept["lstm"], 0.1, gap=0.0)}
    assert find_undertrained(ON, scores)["net"].startswith(SMOKE)
    assert set(find_undertrained(ON, scores | {"boosted-trees": scores["net"]})) == {"most-frequent"}


def test_smoke_runs_are_left_out_of_tables_and_listed_with_the_mark(command):
    on = "cifar10_pictures/human_worst"
    best = command("baselines", "results").stdout
    assert "scan/length" in best and on not in best and "smoke runs left out" in best
    assert command("baselines", "results", "--on", on).stdout.count(SMOKE) >= 3
    (over,) = json.loads(command("splits", "show", on, "--json").stdout)["benchmarks"]
    assert "best" not in over
