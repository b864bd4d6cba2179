"""Tokenisation of sequences for comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Task


def split_tokens(text: str, task: Task) -> Sequence[str]:
    """Split `text` at whitespace or into characters, as the task defines."""
    return text.split() if task.tokens == "whitespace" else text


def compute_similarities(
    answers: Answers, truth: NDArray[Any], task: Task, similarity: Callable[[Sequence[str], Sequence[str]], float]
) -> NDArray[np.float64]:
    """Compute the `similarity` of each text and the expected one as tokens, shape (rows,): 1 if the texts are equal, 0
    for a missing text."""
    values = np.zeros(len(truth))
    for row, (given, expected) in enumerate(zip(answers.prediction, truth, strict=True)):
        if given == expected:
            values[row] = 1.0
        elif given is not None:
            values[row] = similarity(split_tokens(given, task), split_tokens(expected, task))
    return values
