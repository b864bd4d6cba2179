"""Answers that are a score for each of many labels, and answers that are boxes in a picture."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import Answers, Failed, check_model
from farshift.benchmarks.boxes import BadBoxes, compute_iou, read_boxes, write_boxes
from farshift.benchmarks.model import Task
from farshift.benchmarks.parsing import BatchLocation, read_answer
from farshift.benchmarks.runs.predictions import make_answers_table, read_answers
from farshift.core.errors import ModelError

LABELS = Task("multilabel", ("x",), "y", classes=3)
BOXES = Task("detection", ("x",), "y")
PLACE = BatchLocation("ood_test", 0, np.arange(2, dtype=np.uint64))


def test_scores_of_labels_are_any_finite_numbers():
    result = read_answer(np.array([[4.5, -2.0, 0.0], [1.0, 2.0, 3.0]]), PLACE, LABELS)
    assert result.scores.dtype == np.float32
    assert result.scores.tolist() == [[4.5, -2.0, 0.0], [1.0, 2.0, 3.0]]
    assert result.prediction.tolist() == [1, 3], "how many are likely"
    stored = read_answers(make_answers_table(PLACE.rows, result, LABELS), LABELS)
    assert stored.scores.tolist() == result.scores.tolist()


def test_a_row_of_labels_may_be_left_open_or_lost_and_scores_worst_then():
    result = read_answer([None, [1, 2, 3]], PLACE, LABELS)
    assert result.status.tolist() == [1, 0]
    assert read_answer([Failed("no"), [1, 2, 3]], PLACE, LABELS).status.tolist() == [2, 0]
    settled = result.fill_missing(np.array([[1, 0, np.nan], [1, 1, 0]], np.float32), LABELS)
    assert settled.scores[0].tolist() == [-np.inf, np.inf, np.inf]
    assert settled.scores[1].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (np.zeros((2, 4)), r"scores of shape \(2, 4\) and dtype float64, expected \(2, 3\) numbers, one per"),
        (np.array([0, 1]), r"scores of shape \(2,\)"),
        (np.array([[0, 1, np.nan], [0, 0, 0]]), r"NaN or infinity for row 0{16} \(1 row\) on ood_test"),
        ([[1, 2], [1, 2, 3]], "ValueError"),
        (Answers.all_given(np.zeros(2, np.int64)), "Answers without scores of the 3 labels"),
    ],
)
def test_what_is_no_scores_of_labels_is_named(answer, complaint):
    with pytest.raises(ModelError, match=complaint):
        read_answer(answer, PLACE, LABELS)


def test_boxes_are_arrays_or_their_text():
    boxes = [np.array([[0, 1.5, 20, 30, 0.75], [5, 5, 6, 6, 0.1]]), []]
    result = read_answer(boxes, PLACE, BOXES)
    assert result.prediction.tolist() == ["0 1.5 20 30 0.75;5 5 6 6 0.1", ""]
    assert read_answer(result.prediction.tolist(), PLACE, BOXES).prediction.tolist() == result.prediction.tolist()
    read = read_boxes(result.prediction[0])
    assert read.corners.tolist() == [[0, 1.5, 20, 30], [5, 5, 6, 6]]
    assert read.scores.tolist() == [0.75, 0.1]
    assert write_boxes([[0, 0, 1, 1, 0.5, 3]]) == "0 0 1 1 0.5 3"
    assert read_boxes("0 0 1 1 0.5 3").classes.tolist() == [3]
    assert read_answer([None, np.empty((0, 5))], PLACE, BOXES).status.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("boxes", "complaint"),
    [
        ([[0, 0, 1, 1]], r"shape \(1, 4\), expected \(k, 5\) or \(k, 6\)"),
        ([[5, 0, 1, 1, 0.5]], "corners of a box are in the wrong order: 5 0 1 1"),
        ([[0, 0, 1, np.inf, 0.5]], "NaN or infinite"),
        ([[0, 0, 1, 1, 0.5, 0.5]], "a class is not a whole number"),
        ("0 0 1 1", "every box is 'x0 y0 x1 y1 score', or all have a class"),
        ("a wheat head", "something that is not a number"),
        (3, r"shape \(\), expected"),
        (object(), "object is not an array of numbers"),
    ],
)
def test_what_is_no_boxes_is_named_with_its_row(boxes, complaint):
    with pytest.raises(ModelError, match=f"no valid boxes for row 0{{15}}1 .*{complaint}.* on ood_test"):
        read_answer([[], boxes], PLACE, BOXES)


def test_labels_have_no_score():
    assert read_boxes("0 0 1 1", scored=False).scores is None
    assert len(read_boxes("no_box", scored=False)) == 0
    with pytest.raises(BadBoxes, match="every box is 'x0 y0 x1 y1'"):
        read_boxes("0 0 1", scored=False)


def test_overlap_is_intersection_over_union():
    left, right = np.array([[0.0, 0, 4, 4]]), np.array([[0.0, 0, 4, 4], [2, 0, 6, 4], [4, 0, 8, 4], [9, 9, 9, 9]])
    assert compute_iou(left, right).tolist() == [[1.0, 8 / 24, 0.0, 0.0]]
    assert compute_iou(right[3:], right[3:]).tolist() == [[0.0]]


class Finder:
    def predict(self, batch):
        return [np.array([[0, 0, float(x), float(x), 0.5]]) for x in batch["x"]]


class Scorer:
    def predict(self, batch):
        return np.stack([batch["x"], -batch["x"], 0 * batch["x"]], axis=1).astype(float)


@pytest.mark.parametrize(("model", "task"), [(Finder, BOXES), (Scorer, LABELS)])
def test_models_of_either_kind_fulfil_the_contract(model, task):
    check_model(model, task, batch={"x": np.arange(20) % 7})


def test_scores_that_hang_on_the_batch_break_the_contract():
    class Counting(Scorer):
        def predict(self, batch):
            return super().predict(batch) + len(batch["x"])

    with pytest.raises(ModelError, match="predictions in batches of 1 differ"):
        check_model(Counting, LABELS, batch={"x": np.arange(20) % 7})
