"""What metric files share: the types of their arguments, class probabilities and tokens, counts of
classes, and states that are sums of counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from ...core.errors import FarshiftError
from ..answers import Answers as Answers
from ..model import Columns as Columns
from ..model import Task as Task

Values = NDArray[Any]
"""The true labels of n rows, or another field of them, shape (n,); for multilabel tasks (n, classes)."""

Floats = NDArray[np.float64]

State = dict[str, NDArray[Any]]
"""A sufficient statistic of a metric: arrays by name."""


def count_classes(classes: Values, task: Task) -> NDArray[np.int64]:
    """Count how often each class occurs, shape (task.classes,); the -1 of a row without an answer is not counted."""
    return np.bincount(classes[classes >= 0], minlength=task.classes or 0)


def add_states(left: State, right: State) -> State:
    """Merge two states whose arrays are all sums over rows."""
    return {name: left[name] + right[name] for name in left}


def concatenate_states(left: State, right: State) -> State:
    """Merge two states whose arrays have a row for each row."""
    return {name: np.concatenate([left[name], right[name]]) for name in left}


def guess_class(task: Task) -> float:
    """Return 1 / classes, the score of uniform random guessing (on balanced classes)."""
    return 1 / (task.classes or 1)


def expect_zero(task: Task) -> float:
    """Return 0, the score of guessing: texts and boxes cannot be guessed, and independent predictions do not correlate
    with the truth."""
    return 0.0


class StrictOptions(BaseModel):
    """Base of a metric's options."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def get_probabilities(answers: Answers) -> NDArray[np.float32]:
    """Return the probabilities, shape (rows, classes); raises `FarshiftError` if the model returned none."""
    if answers.scores is None:
        raise FarshiftError(
            "this metric requires class probabilities, but the model returned classes: let `predict` return an (n, "
            "classes) array, or use another metric"
        )
    return answers.scores


def split_tokens(text: str, task: Task) -> Sequence[str]:
    """Split `text` at whitespace or into characters, as the task defines."""
    return text.split() if task.tokens == "whitespace" else text


def compute_similarities(
    answers: Answers, truth: Values, task: Task, similarity: Callable[[Sequence[str], Sequence[str]], float]
) -> Floats:
    """Compute the `similarity` of each text and the expected one as tokens, shape (rows,): 1 if the texts are equal, 0
    for a missing text."""
    values = np.zeros(len(truth))
    for row, (given, expected) in enumerate(zip(answers.prediction, truth, strict=True)):
        if given == expected:
            values[row] = 1.0
        elif given is not None:
            values[row] = similarity(split_tokens(given, task), split_tokens(expected, task))
    return values
