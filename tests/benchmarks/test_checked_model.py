"""What the conformance suite asks a model, and when it takes two answers for the same."""

from __future__ import annotations

import numpy as np
from farshift import Answers
from farshift.benchmarks.harness.checked_model import find_differences
from farshift.benchmarks.model import Task
from hypothesis import given
from hypothesis import strategies as st


@given(st.integers(2, 5), st.integers(1, 20), st.integers(0, 10**6))
def test_answers_differ_where_status_prediction_or_probability_does_and_nowhere_else(classes, rows, draw):
    rng = np.random.default_rng(draw)
    task = Task("classification", ("a",), "b", classes=classes)
    scores = rng.dirichlet(np.ones(classes), rows).astype(np.float32)
    left = Answers(scores.argmax(axis=1), rng.integers(0, 3, rows).astype(np.int8), scores)
    assert not find_differences(left, left, task).any()
    rounded = Answers(left.prediction, left.status, scores + np.float32(1e-5))
    assert not find_differences(left, rounded, task).any()
    row = int(rng.integers(rows))
    status = left.status.copy()
    status[row] = (status[row] + 1) % 3
    assert np.flatnonzero(find_differences(left, Answers(left.prediction, status, scores), task)).tolist() == [row]
    moved = scores.copy()
    moved[row] = np.roll(moved[row], 1)
    expected = left.status[row] == 0 and abs(moved[row] - scores[row]).max() > 1e-3
    result = find_differences(left, Answers(moved.argmax(axis=1), left.status, moved), task)
    assert np.flatnonzero(result).tolist() == ([row] if expected else [])


def test_a_tie_of_two_classes_is_no_difference():
    task = Task("classification", ("a",), "b", classes=3)
    left = Answers.all_given(np.array([0, 0]), np.array([[0.4, 0.4, 0.2], [0.5, 0.3, 0.2]], np.float32))
    right = Answers.all_given(np.array([1, 1]), left.scores)
    assert find_differences(left, right, task).tolist() == [False, True]
    bare = Answers.all_given(left.prediction), Answers.all_given(right.prediction)
    assert find_differences(*bare, task).tolist() == [True, True]
