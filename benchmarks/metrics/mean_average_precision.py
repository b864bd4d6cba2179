"""Mean average precision of boxes (mAP): the mean interpolated precision over classes and overlap thresholds.

At each threshold (by default an intersection over union of .50, .55 .. .95), the boxes of an image and class, in
descending order of score, are each matched to the unmatched true box that they overlap most, if the overlap reaches the
threshold; an unmatched box is wrong. Over all images, this gives recall and precision as the score falls; the
interpolated precision at a recall is the highest precision at that recall or above, and its mean over the recalls 0,
.01 .. 1 is the average precision. Boxes of equal score are retrieved together. For each image and class, the 100 boxes
with the highest scores count.

The metric of COCO (Lin et al., ECCV 2014; that of PASCAL VOC, Everingham et al., IJCV 2010, with `overlaps` = [0.5]),
without ignored regions. Checked against `COCOeval` of pycocotools. A row without an answer has no boxes. Classes
without a true box do not count; NaN if there are no true boxes.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from ..boxes import Boxes, compute_iou, read_boxes
from ._base import Answers, Columns, Floats, State, StrictOptions, Task, Values, concatenate_states
from .detection_accuracy import chance as chance

VERSION = 1
TASKS = ("detection",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)

merge = concatenate_states

MOST = 100
_RECALLS = np.arange(101) / 100


class Options(StrictOptions):
    """The overlap thresholds."""

    overlaps: list[Annotated[float, Field(gt=0, le=1)]] = Field(
        default=[(50 + 5 * step) / 100 for step in range(10)], min_length=1
    )


OPTIONS = Options


def update(answers: Answers, truth: Values, task: Task, columns: Columns, options: Options) -> State:
    """Collect for each counted box its `class`, its `score` and the thresholds at which it is `right`, (k, thresholds);
    for each true box its class, `true` (m,)."""
    thresholds = np.array(options.overlaps)
    classes, scores, right, true = [], [], [np.empty((0, len(thresholds)), bool)], []
    for given, expected in zip(answers.prediction, truth, strict=True):
        true_boxes, predicted_boxes = read_boxes(expected, scored=False), read_boxes(given or "")
        true.append(true_boxes.classes)
        for box_class in np.unique(predicted_boxes.classes).tolist():
            corners, ranked = _select_highest(predicted_boxes, box_class)
            scores.append(ranked)
            classes.append(np.full(len(ranked), box_class))
            right.append(
                _match_boxes(compute_iou(corners, true_boxes.corners[true_boxes.classes == box_class]), thresholds)
            )
    return {
        "class": np.concatenate([np.empty(0, np.int64), *classes]),
        "score": np.concatenate([np.empty(0), *scores]),
        "right": np.concatenate(right),
        "true": np.concatenate([np.empty(0, np.int64), *true]),
    }


def _select_highest(boxes: Boxes, box_class: int) -> tuple[Floats, Floats]:
    """Return corners and scores of the boxes of a class, in descending order of score."""
    assert boxes.scores is not None
    own = np.flatnonzero(boxes.classes == box_class)
    own = own[np.argsort(-boxes.scores[own], kind="stable")][:MOST]
    return boxes.corners[own], boxes.scores[own]


def _match_boxes(overlap: Floats, thresholds: Floats) -> NDArray[np.bool_]:
    """Return whether each of k boxes matches one of the m true boxes at each threshold, (k, thresholds)."""
    matches = np.zeros((len(overlap), len(thresholds)), bool)
    for at, threshold in enumerate(thresholds.tolist()):
        left = overlap.copy()
        for box in range(len(left)):
            best = int(left[box].argmax()) if left.shape[1] else -1
            if best >= 0 and left[box, best] >= threshold:
                matches[box, at] = True
                left[:, best] = -1.0
    return matches


def compute(state: State, options: Options) -> float:
    """The mean over classes and thresholds; NaN if there is no true box."""
    classes = np.unique(state["true"])
    precisions = [_average_class_precision(state, box_class) for box_class in classes.tolist()]
    return float(np.mean(precisions)) if precisions else float("nan")


def _average_class_precision(state: State, box_class: int) -> float:
    """Compute the mean over thresholds of a class's average precision."""
    own = state["class"] == box_class
    order = np.argsort(-state["score"][own], kind="stable")
    scores, right = state["score"][own][order], state["right"][own][order]
    last = np.flatnonzero(np.diff(scores, append=-np.inf))
    hits = np.cumsum(right, axis=0)[last]
    recall, precision = hits / np.sum(state["true"] == box_class), hits / (last + 1)[:, None]
    best = np.maximum.accumulate(precision[::-1], axis=0)[::-1]
    return float(np.mean([_interpolate_precision(recall[:, at], best[:, at]) for at in range(right.shape[1])]))


def _interpolate_precision(recall: Floats, best: Floats) -> float:
    at = np.searchsorted(recall, _RECALLS, side="left")
    return float(np.append(best, 0.0)[at].mean())
