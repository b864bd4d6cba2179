"""The tokens of a text, by which sequences are compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Task


def tokens(text: str, task: Task) -> Sequence[str]:
    """The tokens of `text`: split at whitespace, or single characters, as the task defines."""
    return text.split() if task.tokens == "whitespace" else text


def similarities(
    answers: Answers, truth: NDArray[Any], task: Task, similarity: Callable[[Sequence[str], Sequence[str]], float]
) -> NDArray[np.float64]:
    """`similarity` of each text and the expected one as tokens, shape (rows,): 1 if the texts are equal, 0 for a
    text that was never given."""
    found = np.zeros(len(truth))
    for row, (given, expected) in enumerate(zip(answers.prediction, truth, strict=True)):
        if given == expected:
            found[row] = 1.0
        elif given is not None:
            found[row] = similarity(tokens(given, task), tokens(expected, task))
    return found
