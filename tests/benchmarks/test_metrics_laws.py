"""What holds for every metric in the house, whatever it measures."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from farshift import Answers, FarshiftError
from farshift.benchmarks.answers import FAILED
from farshift.benchmarks.metrics import Metric, find_metric
from farshift.core.plugins import find_files_by_name
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import CASES, NUMBERS, OPTIONS, TEXTS, Case, probabilities_of, scored

METRICS = [
    find_metric(name, options=OPTIONS.get(name)) for name in sorted(find_files_by_name("benchmarks/metrics", ".py"))
]

OF_A_CONSTANT = ("worst_group_regret", "worst_group_squared_regret")
"""What these are at best and at worst depends on what a constant answer comes to on the same rows."""

every_metric = pytest.mark.parametrize("measure", METRICS, ids=lambda measure: measure.name)


def cases(measure: Metric) -> st.SearchStrategy[Case]:
    """Cases of every type of task that the metric can score."""
    return st.sampled_from(measure.tasks).flatmap(CASES.__getitem__)


def same(value: float) -> object:
    return pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True)


def loss(measure: Metric, case: Case) -> float:
    """The metric's value, turned so that less is better."""
    return -case.value(measure) if measure.better == "higher" else case.value(measure)


@every_metric
@given(data=st.data())
def test_a_value_does_not_depend_on_shards_or_order_and_is_best_of_right_answers_and_worst_of_none(measure, data):
    case = data.draw(cases(measure))
    value = case.value(measure)
    assert np.isnan(value) or measure.bounds[0] <= value <= measure.bounds[1]
    shard_of = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(case), max_size=len(case))))
    check_shards(
        measure, case, [case[shard_of == shard].state(measure) for shard in data.draw(st.permutations(range(4)))]
    )
    assert case[np.array(data.draw(st.permutations(range(len(case)))))].value(measure) == same(value)
    check_right_answers(measure, case)
    check_all_rows_lost(measure, case)
    assert np.isnan(case[:0].value(measure)), "no rows have no value"
    if measure.needs == "scores":
        classes_only = replace(case, answers=Answers.all_given(case.answers.prediction))
        with pytest.raises(FarshiftError, match="probabilities"):
            classes_only.value(measure)
    if measure.needs == "prediction":
        assert replace(case, answers=replace(case.answers, scores=None)).value(measure) == same(value)


def check_shards(measure: Metric, case: Case, states: list[dict[str, np.ndarray]]) -> None:
    """States merged one after the other, or in pairs, give the value of the whole."""
    full = same(case.value(measure))
    assert measure.compute(reduce(measure.merge, states)) == full
    first, second, third, fourth = states
    assert measure.compute(measure.merge(measure.merge(first, second), measure.merge(third, fourth))) == full


def check_right_answers(measure: Metric, case: Case) -> None:
    if measure.name in ("demographic_parity_difference", "counterfactual_flip_rate"):
        return  # the true classes do not count
    value = case.right().value(measure)
    if measure.name in OF_A_CONSTANT:
        given = loss(measure, case)
        assert np.isnan(given) or loss(measure, case.right()) <= given + 1e-12
        return
    best = measure.bounds[1] if measure.better == "higher" else measure.bounds[0]
    assert np.isnan(value) or value == same(best if np.isfinite(best) else 0.0)


def check_all_rows_lost(measure: Metric, case: Case) -> None:
    nothing = replace(case.answers, status=np.full(len(case), FAILED, np.int8))
    value = replace(case, answers=nothing).value(measure)
    if measure.name in OF_A_CONSTANT:
        assert np.isnan(value) or value >= case.value(measure) - 1e-12
        return
    worst = measure.bounds[0] if measure.better == "higher" else measure.bounds[1]
    assert np.isnan(value) or value == same(worst) or np.isinf(worst)


@every_metric
@given(data=st.data())
def test_a_lost_row_is_never_better_than_any_answer_to_it(measure, data):
    """Or than the right one, where a wrong class (box, entity) costs the precision of that class as well."""
    if measure.name == "relative_corruption_error":
        pytest.skip("a difference: what is lost of the clean rows makes it less")
    case = data.draw(cases(measure))
    row = data.draw(st.integers(0, len(case) - 1))
    lost = loss(measure, case.losing(row))
    if measure.name in ("macro_f1", "macro_f1_present", "entity_f1"):
        answered = giving(case, row, case.truth[row])
    elif case.task.type == "detection":
        answered = giving(case, row, scored(case.truth[row]))
    elif case.task.type == "multilabel":
        answered = giving(case, row, 0, np.array(data.draw(st.tuples(*[NUMBERS] * 3)), np.float32))
    elif case.task.type == "classification":
        scores = data.draw(probabilities_of(case.task.classes))
        answered = giving(case, row, scores.argmax(), scores)
    else:
        answered = giving(case, row, data.draw(TEXTS if case.task.type == "sequence" else NUMBERS))
    answered_loss = loss(measure, answered)
    # A shape bias has no value where no answer decides for shape or texture; a lost row decides for texture.
    assert np.isnan(lost) or np.isnan(answered_loss) or lost >= answered_loss - 1e-12


def giving(case: Case, row: int, answer: object, scores: np.ndarray | None = None) -> Case:
    """The case with `answer` to one row."""
    given = replace(case.answers, prediction=case.answers.prediction.copy(), status=case.answers.status.copy())
    given.prediction[row], given.status[row] = answer, 0
    if scores is not None:
        given = replace(given, scores=given.scores.copy())
        given.scores[row] = scores
    return replace(case, answers=given)
