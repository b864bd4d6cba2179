"""A small source of labelled images, and what a rule of label noise made of it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from farshift.core.draws import draw_below, draw_bits
from farshift.splits.assignment import Assignment
from numpy.typing import NDArray

CLASSES = 10
ROWS = 6000
TRAIN = 5000


def labelled(rows: int = ROWS, classes: int = CLASSES) -> pa.Table:
    """`rows` images of 4 x 4 pixels; each class has a bright pixel of its own, the rest is noise."""
    counters = np.arange(rows, dtype=np.uint64)
    truth = draw_below("test/label", counters, classes)
    pixels = draw_below("test/pixel", np.arange(rows * 16, dtype=np.uint64), 200).reshape(rows, 16)
    pixels[np.arange(rows), truth % 16] += 55
    return pa.table(
        {
            "row_id": np.sort(draw_bits("test/id", counters)),
            "image": pa.FixedSizeListArray.from_arrays(pa.array(pixels.astype(np.uint8).ravel()), 16),
            "digit": truth,
            "published": np.where(counters < rows * 5 // 6, "train", "test").tolist(),
            "row": counters.astype(np.int64),
        }
    )


def given(table: pa.Table, outcome: Assignment) -> NDArray[np.int64]:
    """The labels as a model would see them."""
    truth: NDArray[np.int64] = table["digit"].to_numpy()
    assert outcome.label is not None
    return np.where(np.ma.getmaskarray(outcome.label), truth, outcome.label.data)


def counted(table: pa.Table, outcome: Assignment, classes: int = CLASSES) -> list[list[int]]:
    """Training rows by true class (line) and given class (column), counted one by one."""
    counts = [[0] * classes for _ in range(classes)]
    rows = zip(outcome.part.tolist(), table["digit"].to_pylist(), given(table, outcome).tolist(), strict=True)
    for part, true, label in rows:
        if part == "train":
            counts[true][label] += 1
    return counts
