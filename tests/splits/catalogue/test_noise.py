"""Label noise by class: exact rates, the transition matrix that was asked for, draws that differ and repeat."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from farshift.core.errors import BadDefinition, UnknownName
from farshift.splits.rules import noise
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from noise_tables import CLASSES, TRAIN, counted, given, labelled
from scipy.stats import chisquare

TABLE = labelled()
COMMON = {"label": "digit", "classes": CLASSES, "train": TRAIN, "seed": "test@1", "draw": 1}
PAIRS = {"2": {"7": 0.4}, "3": {"8": 0.4}, "5": {"6": 0.4}, "6": {"5": 0.4}, "7": {"1": 0.4}}
BY_RATE = (noise.symmetric_exclusive, noise.symmetric_inclusive, noise.pair_flip)


def wrong_rows(outcome):
    return set(np.flatnonzero(~np.ma.getmaskarray(outcome.label)).tolist())


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.4, 0.6, 1.0])
def test_the_exclusive_form_makes_exactly_the_stated_share_wrong(rate):
    outcome = noise.symmetric_exclusive(TABLE, rate=rate, **COMMON)
    counts = np.array(counted(TABLE, outcome))
    assert counts.sum() == TRAIN
    assert counts.sum() - counts.trace() == len(wrong_rows(outcome)) == round(rate * TRAIN)


def test_the_exclusive_form_gives_every_other_class_alike():
    counts = np.array(counted(TABLE, noise.symmetric_exclusive(TABLE, rate=0.6, **COMMON)))
    off = counts[~np.eye(CLASSES, dtype=bool)].reshape(CLASSES, CLASSES - 1)
    assert off.min() > 0
    for line in off:
        assert chisquare(line).pvalue > 1e-4


def test_the_inclusive_form_leaves_one_redrawn_label_in_ten_right():
    outcome = noise.symmetric_inclusive(TABLE, rate=0.6, **COMMON)
    redrawn = round(0.6 * TRAIN)
    wrong = len(wrong_rows(outcome))
    assert abs(wrong - 0.9 * redrawn) < 4 * np.sqrt(redrawn * 0.1 * 0.9)
    counts = np.array(counted(TABLE, outcome))
    assert counts.sum() - counts.trace() == wrong, "a label that is redrawn right is not called corrupted"


def test_random_labels_know_nothing_of_the_truth():
    counts = np.array(counted(TABLE, noise.symmetric_inclusive(TABLE, rate=1.0, **COMMON)))
    for line in counts:
        assert chisquare(line).pvalue > 1e-4


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.45])
def test_pair_flip_moves_an_exact_share_of_each_class_to_the_next_one(rate):
    counts = counted(TABLE, noise.pair_flip(TABLE, rate=rate, **COMMON))
    for true, line in enumerate(counts):
        moved = round(rate * sum(line))
        expected = [0] * CLASSES
        expected[true], expected[(true + 1) % CLASSES] = sum(line) - moved, moved
        assert line == expected


def test_a_transition_table_is_kept_to_the_row():
    counts = counted(TABLE, noise.asymmetric(TABLE, transitions=PAIRS, **COMMON))
    for true, line in enumerate(counts):
        expected = [0] * CLASSES
        shares = PAIRS.get(str(true), {})
        for wrong, share in shares.items():
            expected[int(wrong)] = round(share * sum(line))
        expected[true] = sum(line) - sum(expected)
        assert line == expected


def test_a_class_may_become_several():
    shares = {"1": 0.3, "4": 0.3, "9": 0.4}
    line = counted(TABLE, noise.asymmetric(TABLE, transitions={"0": shares}, **COMMON))[0]
    for wrong, share in shares.items():
        assert abs(line[int(wrong)] - share * sum(line)) <= 1
    assert line[0] == 0


@pytest.mark.parametrize("rule", BY_RATE)
def test_rows_that_are_wrong_at_one_rate_are_wrong_in_the_same_way_at_a_higher_one(rule):
    low, high = (rule(TABLE, rate=rate, **COMMON) for rate in (0.2, 0.4))
    rows = sorted(wrong_rows(low))
    assert rows
    assert wrong_rows(low) < wrong_rows(high)
    assert np.array_equal(given(TABLE, low)[rows], given(TABLE, high)[rows])


def test_another_draw_corrupts_other_rows_of_the_same_training_part():
    item, two = (noise.symmetric_exclusive(TABLE, rate=0.4, **COMMON | {"draw": draw}) for draw in (1, 2))
    assert np.array_equal(item.part, two.part)
    shared = len(wrong_rows(item) & wrong_rows(two))
    expected = 0.4 * 0.4 * TRAIN
    assert abs(shared - expected) < 5 * np.sqrt(expected), "two draws share rows as independent ones do"


def test_the_forms_of_one_draw_corrupt_the_same_rows():
    exclusive = noise.symmetric_exclusive(TABLE, rate=0.4, **COMMON)
    inclusive = noise.symmetric_inclusive(TABLE, rate=0.4, **COMMON)
    assert wrong_rows(inclusive) < wrong_rows(exclusive)


@settings(max_examples=20)
@drawn(order=st.permutations(range(200)), rule=st.sampled_from(BY_RATE))
def test_a_row_s_fate_does_not_depend_on_the_order_of_the_table(order, rule):
    table = labelled(200)
    settings_of = COMMON | {"train": 150, "rate": 0.4}
    straight = given(table, rule(table, **settings_of))
    shuffled = table.take(order)
    assert np.array_equal(given(shuffled, rule(shuffled, **settings_of)), straight[np.array(order)])


@pytest.mark.parametrize("rule", BY_RATE)
def test_test_labels_stay_true(rule):
    outcome = rule(TABLE, rate=1.0, **COMMON)
    test = outcome.part == "id_test"
    assert test.sum() == len(TABLE) - TRAIN
    assert np.ma.getmaskarray(outcome.label)[test].all()


def test_the_published_training_part_can_be_named():
    outcome = noise.symmetric_exclusive(TABLE, rate=0.2, **COMMON | {"train": {"published": "train"}})
    assert (outcome.part == "train").tolist() == [value == "train" for value in TABLE["published"].to_pylist()]
    assert len(wrong_rows(outcome)) == round(0.2 * 5000)


def test_a_million_classes_cost_no_matrix():
    table = labelled(200, 1_000_000)
    settings_of = COMMON | {"classes": 1_000_000, "train": 150}
    wrong = len(wrong_rows(noise.symmetric_exclusive(table, rate=0.5, **settings_of)))
    assert wrong == 75
    assert len(wrong_rows(noise.pair_flip(table, rate=1.0, **settings_of))) == 150


@pytest.mark.parametrize(
    ("rule", "change", "complaint"),
    [
        ("symmetric_exclusive", {"rate": 1.2}, "rate = 1.2: a share of the training labels, from 0 to 1"),
        ("symmetric_inclusive", {"rate": -0.1}, "rate = -0.1: a share"),
        ("pair_flip", {"rate": float("nan")}, "rate = nan: a share"),
        ("pair_flip", {"rate": 0.2, "classes": 9}, "run from 0 to 9, not within 0..8"),
        ("pair_flip", {"rate": 0.2, "classes": 1}, "classes = 1: at least 2"),
        ("pair_flip", {"rate": 0.2, "draw": 0}, "draws are numbered from 1"),
        ("pair_flip", {"rate": 0.2, "train": 6000}, "train = 6000, but there are 6000 rows"),
        ("pair_flip", {"rate": 0.2, "train": {"published": "valid"}}, "marks 0 of 6000 rows"),
        ("pair_flip", {"rate": 0.2, "train": {"published": 1}}, "the text that marks a training row"),
        ("pair_flip", {"rate": 0.2, "train": {"row": "1"}}, "the rule needs text"),
        ("pair_flip", {"rate": 0.2, "train": {"publisht": "train"}}, "did you mean published?"),
        ("pair_flip", {"rate": 0.2, "label": "published"}, "the rule needs numbers"),
        ("pair_flip", {"rate": 0.2, "label": "digits"}, "did you mean digit?"),
        ("asymmetric", {"transitions": {}}, "no class changes"),
        ("asymmetric", {"transitions": {"3": {"10": 0.4}}}, "there is no class '10'; classes are 0..9"),
        ("asymmetric", {"transitions": {"cat": {"1": 0.4}}}, "there is no class 'cat'"),
        ("asymmetric", {"transitions": {"3": {"3": 0.4}}}, "shares of *other* classes"),
        ("asymmetric", {"transitions": {"3": {"1": 0.7, "2": 0.7}}}, "at most 1 in all"),
        ("asymmetric", {"transitions": {"3": {"1": 1.4}}}, "rate = 1.4"),
    ],
)
def test_a_definition_that_cannot_be_says_why_in_one_line(rule, change, complaint):
    with pytest.raises((BadDefinition, UnknownName), match=re.escape(complaint)) as refused:
        getattr(noise, rule)(TABLE, **COMMON | change)
    assert "\n" not in str(refused.value)


def test_labels_that_are_no_whole_numbers_are_refused():
    table = TABLE.set_column(TABLE.column_names.index("digit"), "digit", pa.array(TABLE["digit"].to_numpy() / 2))
    with pytest.raises(BadDefinition, match="label noise needs whole numbers"):
        noise.pair_flip(table, rate=0.2, **COMMON)
