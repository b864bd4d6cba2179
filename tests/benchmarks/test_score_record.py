"""A score and its JSON are the same thing: written, read back, and equal; likewise a run card."""

import json

import farshift as fs
import pytest
from farshift.baselines.running.results import find_recorded_run, list_results
from farshift.benchmarks.runs.card import RunCard
from farshift.benchmarks.scoring.record import Score
from farshift.core.documents import read_toml
from records import many, record

ON = ("modadd97/xi35", "prefix_sums/32_to_64")
RECORDED = [(on, name) for on, name in list_results() if on in ON]
MADE = [*many(3), record(groups={"a": 0.1, "b": 0.5}, probabilities=True), record(seeds=1, bounds=None)]


def read_back(score):
    """A score out of its JSON, as a record and as a score again; and what a score out of its report prints."""
    there = json.loads(score.json())
    return there, Score.from_dict(there), str(Score.from_dict(score.report()))


@pytest.mark.parametrize(("on", "name"), RECORDED[::7], ids=lambda value: value.replace("/", "-"))
def test_the_score_of_a_recorded_run_is_read_back_as_it_was_written(on, name):
    score = fs.score(find_recorded_run(on, name))
    there, again, printed = read_back(score)
    assert again == score
    assert again.to_dict() == score.to_dict() == there
    assert printed == str(score)


@pytest.mark.parametrize("score", MADE, ids=lambda score: score.model)
def test_every_part_of_a_score_is_read_back_as_it_was_written(score):
    there, again, printed = read_back(score)
    assert again == score
    assert again.to_dict() == score.to_dict() == there
    assert printed == str(score)


def test_each_benchmark_named_here_has_recorded_runs():
    assert {on for on, _ in RECORDED} == set(ON)


def test_scores_that_differ_are_not_equal_once_read_back():
    first, second = (read_back(score)[1] for score in MADE[:2])
    assert first != second
    assert first.to_dict() != second.to_dict()


def test_a_run_card_says_what_its_file_says():
    for on, name in RECORDED[:4]:
        run = find_recorded_run(on, name)
        there = read_toml(run.path / "run.toml")
        assert RunCard.from_dict(there).to_dict() == run.card.to_dict() == there
