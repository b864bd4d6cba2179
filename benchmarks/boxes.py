"""Bounding boxes in images, and their text format: the labels and predictions of a detection task.

A label is "x0 y0 x1 y1;x0 y0 x1 y1;..": a box by two corners, in pixels, x0 <= x1 and y0 <= y1; with a fifth number
if there are classes (0, 1, ..), and "" or "no_box" if there is no box. WILDS has the Global Wheat Head Dataset in this
format. A prediction has a score after the corners, and then the class: "x0 y0 x1 y1 score class".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import FarshiftError

NONE = ("", "no_box")


class BadBoxes(FarshiftError):
    """An invalid list of boxes."""


@dataclass(frozen=True)
class Boxes:
    """k boxes. corners: (k, 4) float64: x0, y0, x1, y1. classes: (k,) int64, 0 if there is a single class. scores: (k,)
    float64; None for labels."""

    corners: NDArray[np.float64]
    classes: NDArray[np.int64]
    scores: NDArray[np.float64] | None = None

    def __len__(self) -> int:
        return len(self.corners)


def read_boxes(text: str, scored: bool = True) -> Boxes:
    """Parse the boxes of a text, with scores or (for a label) without; `BadBoxes` says what is wrong with it."""
    least = 5 if scored else 4
    if text.strip() in NONE:
        return _make_boxes(np.empty((0, least)), scored)
    try:
        rows = [[float(number) for number in row_text.split()] for row_text in text.split(";")]
    except ValueError as error:
        raise BadBoxes(f"a box has something that is not a number: {text[:60]!r}") from error
    if {len(row) for row in rows} not in ({least}, {least + 1}):
        what = "x0 y0 x1 y1 score" if scored else "x0 y0 x1 y1"
        raise BadBoxes(f"every box is {what!r}, or all have a class after it: {text[:60]!r}")
    return _make_boxes(np.array(rows), scored)


def write_boxes(given: Any) -> str:
    """Format an array of k boxes, shape (k, 5) or (k, 6): x0, y0, x1, y1, score, class; `BadBoxes` says what is wrong
    with it. Numbers are written with the fewest digits that read back as the same float32."""
    try:
        values = np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise BadBoxes(f"{type(given).__name__} is not an array of numbers") from error
    if values.size == 0:
        return ""
    if values.ndim != 2 or values.shape[1] not in (5, 6):
        raise BadBoxes(f"shape {values.shape}, expected (k, 5) or (k, 6): x0, y0, x1, y1, score, class")
    _make_boxes(values, scored=True)
    texts = [[f"{n:.0f}" if n == int(n) else str(np.float32(n)) for n in row] for row in values.tolist()]
    return ";".join(" ".join(row) for row in texts)


def _make_boxes(values: NDArray[np.float64], scored: bool) -> Boxes:
    least = 5 if scored else 4
    if not np.isfinite(values).all():
        raise BadBoxes("a number is NaN or infinite")
    corners = values[:, :4]
    if (corners[:, :2] > corners[:, 2:]).any():
        wrong = corners[(corners[:, :2] > corners[:, 2:]).any(axis=1)][0]
        raise BadBoxes(f"the corners of a box are in the wrong order: {' '.join(f'{corner:g}' for corner in wrong)}")
    classes = values[:, least] if values.shape[1] > least else np.zeros(len(values))
    if (classes < 0).any() or (classes != np.floor(classes)).any():
        raise BadBoxes("a class is not a whole number of at least 0")
    return Boxes(corners, classes.astype(np.int64), values[:, 4] if scored else None)


def compute_iou(left: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the intersection over union of each of k boxes with each of m, shape (k, m), from their corners (k, 4) and
    (m, 4); 0 if both have no area."""
    low = np.maximum(left[:, None, :2], right[None, :, :2])
    high = np.minimum(left[:, None, 2:], right[None, :, 2:])
    shared = np.prod(np.clip(high - low, 0, None), axis=2)
    areas = [np.prod(boxes[:, 2:] - boxes[:, :2], axis=1) for boxes in (left, right)]
    union = areas[0][:, None] + areas[1][None, :] - shared
    ratios: NDArray[np.float64] = np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)
    return ratios
