"""Copies are found whoever sends them; honest models, however alike, are not taken for one."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.statistics.near_copies import Given, copies, near

SEEDS, ROWS, CLASSES = 5, 1000, 10


def honest(source, truth, wrong=0.1, own=0.04, noise=None, classes=CLASSES, seeds=SEEDS) -> Given:
    """A model that errs on hard rows, as all do (`wrong` of them), and each of its seeds on `own` of all besides. noise:
    rows whose label is wrong, which every model answers otherwise, with one answer."""
    hard = np.arange(len(truth)) < wrong * len(truth)
    errs = np.where(hard, 0.7, 0.02) > source.random(len(truth))
    answers = np.where(errs, (truth + source.integers(1, classes, len(truth))) % classes, truth)
    runs = np.stack([answers] * seeds)
    again = source.random(runs.shape) < own
    runs = np.where(again, (truth + source.integers(0, classes, runs.shape)) % classes, runs)
    if noise is not None:
        runs[:, noise] = (truth[noise] + 1) % classes
    return Given(runs.astype(np.int64), runs != truth)


def copied(source, given: Given, truth, flipped: float) -> Given:
    answers = given.answers.copy()
    here = source.random(answers.shape) < flipped
    answers[here] = (answers[here] + 1) % CLASSES
    answers = answers[source.permutation(len(answers))]
    return Given(answers, answers != truth)


@pytest.fixture
def source():
    return np.random.default_rng(7)


@pytest.fixture
def truth(source):
    return source.integers(0, CLASSES, ROWS)


@pytest.mark.parametrize("flipped", [0.0, 0.002, 0.01, 0.02])
def test_a_copy_with_some_rows_changed_and_its_seeds_dealt_out_anew_is_near(source, truth, flipped):
    leader = honest(source, truth)
    assert near(leader, copied(source, leader, truth, flipped))


@pytest.mark.parametrize("seeds", [1, 5])
def test_a_copy_of_a_model_whose_seeds_agree_is_near(source, truth, seeds):
    leader = honest(source, truth, own=0.0, seeds=seeds)
    assert near(leader, copied(source, leader, truth, 0.004))
    assert not near(leader, honest(source, truth, own=0.0, seeds=seeds))


def test_one_run_of_the_leader_sent_as_every_seed_is_near(source, truth):
    leader = honest(source, truth)
    one = np.stack([leader.answers[2]] * SEEDS)
    assert near(leader, Given(one, one != truth))


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"wrong": 0.0, "own": 0.005},  # easy: they agree on 97 % of the rows
        {"wrong": 0.0, "own": 0.001, "noise": slice(0, 15)},  # wrong labels, on which all agree
        {"wrong": 0.5, "own": 0.2, "classes": 2},
        {"wrong": 0.5, "own": 0.0, "classes": 2},
    ],
)
def test_honest_models_are_not_taken_for_one(source, said):
    """46 of them against each other: not a pair."""
    truth = source.integers(0, said.get("classes", CLASSES), ROWS)
    field = [honest(source, truth, **said) for _ in range(46)]
    assert copies(field, [str(k) for k in range(46)]) == [None] * 46


def test_models_without_an_error_are_one_and_those_of_a_single_other_error_are_not():
    truth = np.zeros(200, np.int64)
    perfect = Given(np.stack([truth] * 3), np.zeros((3, 200), bool))
    other = perfect.answers.copy()
    other[:, 7] = 1
    assert near(perfect, perfect)
    assert not near(perfect, Given(other, other != truth))


def test_a_copy_is_that_of_the_first_and_a_team_copies_itself_as_it_likes(source, truth):
    first, second = honest(source, truth), honest(source, truth)
    entries = [first, copied(source, first, truth, 0.0), second, copied(source, first, truth, 0.01), first]
    assert copies(entries, ["a", "b", "c", "b", "a"]) == [None, 0, None, 0, None]


def test_numbers_are_near_within_half_of_what_seeds_differ_or_a_tenth_of_the_error(source):
    truth = source.normal(size=ROWS)
    common = truth + 0.3 * source.normal(size=ROWS)
    runs = common + 0.1 * source.normal(size=(3, ROWS))

    def given(answers):
        return Given(answers, np.sqrt(((answers - truth) ** 2).mean(axis=1)))

    other = truth + 0.3 * source.normal(size=ROWS) + 0.1 * source.normal(size=(3, ROWS))
    assert near(given(runs), given(runs + 0.02 * source.normal(size=runs.shape)))
    assert not near(given(runs), given(other))
    assert not near(given(runs), given(common + 0.1 * source.normal(size=(3, ROWS))))
    assert not near(given(runs), Given(runs[:, :500], given(runs).wrong))
