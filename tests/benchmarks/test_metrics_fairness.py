"""Demographic parity and equalised odds: by hand, against every pair of groups tried, and with lost rows."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from farshift import Answers, FarshiftError
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from hypothesis import given
from metric_cases import Case, classified

TWO = Task("classification", ("x",), "y", 2)
PARITY = find_metric("demographic_parity_difference", options={"by": ["place"]})
ODDS = find_metric("equalised_odds_difference", options={"by": ["place"]})


def by_hand(positive: int = 1) -> list[float]:
    """Ten women and ten men: women are selected at .3 (of four positives two), men at .6 (of five positives five)."""
    truth = [1] * 4 + [0] * 6 + [1] * 5 + [0] * 5
    given = [1, 1, 0, 0] + [1] + [0] * 5 + [1] * 5 + [1] + [0] * 4
    case = Case(
        Answers.all_given(np.array(given)),
        np.array(truth),
        TWO,
        {"place": np.repeat(["women", "men"], 10).astype(object)},
    )
    names = ("demographic_parity_difference", "equalised_odds_difference")
    return [case.value(find_metric(name, options={"by": ["place"], "positive": positive})) for name in names]


def test_two_groups_by_hand():
    assert by_hand() == pytest.approx([0.6 - 0.3, 1.0 - 0.5])


def test_the_other_class_has_the_same_differences():
    assert by_hand(positive=0) == pytest.approx(by_hand())


def largest_difference(selected: np.ndarray, places: np.ndarray) -> float:
    """Over every ordered pair of groups that have rows."""
    rates = [np.mean(selected[places == place]) for place in np.unique(places.astype(str))]
    return max((left - right for left, right in permutations(rates, 2)), default=float("nan"))


@given(classified(losses=False))
def test_the_largest_difference_is_that_of_every_pair_tried(case):
    places, selected, truth = case.columns["place"], case.answers.prediction == 1, case.truth == 1
    assert case.value(PARITY) == pytest.approx(largest_difference(selected, places), nan_ok=True)
    each = [largest_difference(selected[truth == y], places[truth == y]) for y in (False, True)]
    assert case.value(ODDS) == pytest.approx(np.fmax(*each), nan_ok=True)


@given(classified())
def test_lost_rows_have_the_largest_difference_that_any_answer_to_them_gives(case):
    case = case[np.setdiff1d(np.arange(len(case)), np.flatnonzero(case.settled.prediction < 0)[4:])]
    lost = np.flatnonzero(case.settled.prediction < 0)
    for metric in (PARITY, ODDS):
        values = []
        for code in range(1 << len(lost)):
            given = case.settled.prediction.copy()
            given[lost] = [code >> at & 1 for at in range(len(lost))]
            values.append(Case(Answers.all_given(given), case.truth, case.task, case.columns).value(metric))
        assert case.value(metric) == pytest.approx(max(values), nan_ok=True)


def test_a_constant_and_one_group_say_nothing():
    places = np.array(["a", "a", "b", "b"], object)
    constant = Case(Answers.all_given(np.ones(4, int)), np.array([0, 1, 0, 1]), TWO, {"place": places})
    assert constant.value(PARITY) == constant.value(ODDS) == 0
    assert np.isnan(constant[:2].value(PARITY))
    assert np.isnan(constant[:2].value(ODDS))


def test_a_class_that_the_task_lacks_is_named():
    with pytest.raises(FarshiftError, match="positive = 2, and the task has the classes 0 to 1"):
        by_hand(positive=2)


@given(classified())
def test_people_whose_predictions_differ_are_counted_one_by_one(case: Case) -> None:
    given_to: dict[str, list[int]] = {}
    for person, prediction in zip(case.columns["place"], case.settled.prediction.tolist(), strict=True):
        given_to.setdefault(str(person), []).append(prediction)
    several = [given for given in given_to.values() if len(given) > 1]
    flipped = [len(set(given)) > 1 or -1 in given for given in several]
    value = case.value(find_metric("counterfactual_flip_rate", options={"person": "place"}))
    assert value == pytest.approx(np.mean(flipped) if several else np.nan, nan_ok=True)
