"""What the conformance suite asks a model, and when it takes two answers for the same."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.harness.checked_model import TASKS, CheckedModel, change_labels, find_differences, make_columns
from farshift.benchmarks.model import Task
from hypothesis import given
from hypothesis import strategies as st

PAIRS = Task("classification", ("a", "b"), "sum", classes=7)
TEXT = Task("sequence", ("command",), "actions")
BITS = Task("sequence", ("bits",), "sums", tokens="character", aligned=True)
VALUE = Task("regression", ("x",), "value")


class WritesIntoTheRows:
    def fit(self, train, val, budget):
        train.numpy()["a"] += 1

    def predict(self, batch):
        return batch["a"]


@pytest.mark.parametrize("task", [*TASKS, PAIRS, TEXT, BITS, VALUE], ids=lambda task: f"{task.type}-{task.label}")
def test_drawn_rows_are_always_the_same_and_fit_their_task(task):
    columns, again = make_columns(task), make_columns(task)
    assert sorted(columns) == sorted([*task.inputs, task.label])
    assert all(columns[name].tolist() == again[name].tolist() for name in columns)
    label = columns[task.label]
    if task.type == "classification":
        assert set(label.tolist()) == set(range(task.classes))
        assert all(set(columns[name].tolist()) == set(range(task.classes)) for name in task.inputs if name != "pixels")
    elif task.type == "sequence":
        texts = columns[task.inputs[0]]
        lengths = [len(text.split() if task.tokens == "whitespace" else text) for text in texts]
        assert set(lengths) == set(range(1, 10))
        assert lengths == [len(text.split() if task.tokens == "whitespace" else text) for text in label]
    else:
        assert ((label >= 0) & (label < 1)).all()


@pytest.mark.parametrize("task", [PAIRS, TEXT, BITS, VALUE], ids=lambda task: f"{task.type}-{task.label}")
def test_another_label_is_another_and_as_good_for_the_task(task):
    label = make_columns(task)[task.label]
    other = change_labels(task, label)
    assert sum(item != two for item, two in zip(label, other, strict=True)) > len(label) / 2
    if task.type == "classification":
        assert not (label == other).any()
        assert set(other.tolist()) <= set(range(task.classes))
    elif task.type == "sequence":
        tokens = str.split if task.tokens == "whitespace" else list
        assert [tokens(text) for text in other] == [tokens(text)[::-1] for text in label]


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


def test_a_checked_model_is_trained_on_copies():
    rows = {"a": np.arange(3), "b": np.arange(3)}
    checked = CheckedModel(WritesIntoTheRows, PAIRS, rows)
    checked.train_model()
    assert rows["a"].tolist() == [0, 1, 2]
