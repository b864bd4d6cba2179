"""A score and its JSON are the same thing: written, read back, and equal; likewise a run card."""

import json

import farshift as fs
import pytest
from farshift.baselines.running.results import recorded, results
from farshift.benchmarks.runs.card import RunCard
from farshift.benchmarks.scoring.record import Score
from farshift.core.plugins import read_toml
from records import many, record

ON = ("modadd97/xi35", "prefix_sums/32_to_64")
RECORDED = [(on, name) for on, name in results() if on in ON]
MADE = [*many(3), record(groups={"a": 0.1, "b": 0.5}, probabilities=True), record(seeds=1, bounds=None)]


def holds(score):
    there = json.loads(score.json())
    again = Score.from_dict(there)
    assert again == score
    assert again.to_dict() == score.to_dict() == there
    assert str(Score.from_dict(score.report())) == str(score)


@pytest.mark.parametrize(("on", "name"), RECORDED, ids=lambda value: value.replace("/", "-"))
def test_the_score_of_a_recorded_run_is_read_back_as_it_was_written(on, name):
    holds(fs.score(recorded(on, name)))


@pytest.mark.parametrize("score", MADE, ids=lambda score: score.model)
def test_every_part_of_a_score_is_read_back_as_it_was_written(score):
    holds(score)


def test_a_run_card_says_what_its_file_says():
    for on, name in RECORDED[:4]:
        run = recorded(on, name)
        there = read_toml(run.path / "run.toml")
        assert RunCard.from_dict(there).to_dict() == run.card.to_dict() == there
