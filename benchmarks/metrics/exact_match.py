"""Exact match: the share of rows whose whole output sequence is correct, token by token."""

from __future__ import annotations

import numpy as np

from ._base import Answers, Floats, Task, Values, expect_zero

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = expect_zero


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """1 if every token is correct and none is missing or superfluous, else 0.

    For whitespace tokens the amount of whitespace between and around tokens is ignored; for character tokens every
    character counts.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    given, expected = pa.array(answers.prediction, pa.string()), pa.array(truth, pa.string())
    if task.tokens == "whitespace":
        given, expected = (
            pc.binary_join(pc.utf8_split_whitespace(pc.utf8_trim_whitespace(text)), " ") for text in (given, expected)
        )
    same = pc.fill_null(pc.equal(given, expected), False)  # a missing answer never matches
    return same.to_numpy(zero_copy_only=False).astype(np.float64)  # type: ignore[no-any-return]
