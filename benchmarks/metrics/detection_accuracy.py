"""Detection accuracy: the mean over images of TP / (TP + FP + FN), for boxes of one class.

Predicted boxes with a score above 0.5 count. Each is matched to the true box that it overlaps most, if their
intersection over union is at least 0.5. TP true boxes are matched, FN are not, and FP predicted boxes match none, or
one that is already matched. An image without true and predicted boxes scores 1; one with predicted boxes only scores 0.

The accuracy of the Global Wheat challenge 2021 (David et al., arXiv:2105.07660) and of GlobalWheat-WILDS (Koh et al.,
"WILDS", ICML 2021), which averages it over domains (`domain_detection_accuracy`). Checked against `DetectionAccuracy`
in wilds/common/metrics/all_metrics.py of p-lambda/wilds. A row without an answer scores 0.
"""

from __future__ import annotations

import numpy as np

from ..boxes import compute_iou, read_boxes
from ._base import Answers, Floats, Task, Values, expect_zero

VERSION = 1
TASKS = ("detection",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = expect_zero

SCORE, OVERLAP = 0.5, 0.5


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """Compute the accuracy of each image, shape (n,)."""
    pairs = zip(answers.prediction, truth, strict=True)
    return np.array([0.0 if given is None else _score_image(given, true) for given, true in pairs], np.float64)


def _score_image(given: str, true: str) -> float:
    true_boxes, predicted_boxes = read_boxes(true, scored=False), read_boxes(given)
    assert predicted_boxes.scores is not None
    confident = predicted_boxes.corners[predicted_boxes.scores > SCORE]
    if not len(true_boxes) or not len(confident):
        return float(len(true_boxes) == len(confident))
    overlap = compute_iou(confident, true_boxes.corners)
    hits = len(np.unique(overlap.argmax(axis=1)[overlap.max(axis=1) >= OVERLAP]))
    return hits / (len(confident) + len(true_boxes) - hits)
