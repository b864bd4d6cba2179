"""A model's predictions, class probabilities if it has them, and the rows that it did not answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .model import Task

ANSWERED, ABSTAINED, FAILED = 0, 1, 2
"""A row's status: answered; the model abstained; lost (no prediction could be made or parsed)."""

TOLERANCE = 1e-3
"""How much a probability, or a number relative to its size, may differ between batches."""


@dataclass(frozen=True)
class Failed:
    """Returned by a model's `predict` in place of a prediction that could not be made: the reason, in a few words.

    >>> import farshift as fs
    >>> fs.Failed("the endpoint gave no answer").reason
    'the endpoint gave no answer'
    """

    reason: str


@dataclass(frozen=True)
class Answers:
    """The predictions for n rows, in the order of the rows.

    prediction: (n,) classes as int64, numbers as float64, or texts (also boxes as text) as an object array of `str`;
      for multilabel tasks the number of likely labels (with a score above 0) as int64: there the scores are the
      prediction. Where `status` is not `ANSWERED` the value is a placeholder.
    status: (n,) int8.
    scores: (n, classes) float32, each row a probability distribution over the classes, or for multilabel tasks any
      finite scores; None if the model has none.

    >>> import farshift as fs, numpy as np
    >>> answers = fs.Answers.all_given(np.array([3, 1, 3]))
    >>> len(answers), answers.answered.tolist()
    (3, [True, True, True])
    """

    prediction: NDArray[Any]
    status: NDArray[np.int8]
    scores: NDArray[np.float32] | None = None

    @classmethod
    def all_given(cls, prediction: NDArray[Any], scores: NDArray[np.float32] | None = None) -> Answers:
        """Make the answers of a model that predicted every row."""
        return cls(prediction, np.zeros(len(prediction), np.int8), scores)

    def __len__(self) -> int:
        return len(self.prediction)

    def __getitem__(self, rows: NDArray[Any] | slice) -> Answers:
        """Select rows by indices, a mask or a slice."""
        scores = None if self.scores is None else self.scores[rows]
        return Answers(self.prediction[rows], self.status[rows], scores)

    def scatter(self, mask: NDArray[np.bool_], status: NDArray[np.int8] | None = None) -> Answers:
        """Place these answers at the rows of a mask (n,). status: (n,), by default `FAILED` for the other rows."""
        if status is None:
            status = np.full(len(mask), FAILED, np.int8)
            status[mask] = self.status
        prediction = np.full(len(mask), "" if self.prediction.dtype == object else 0, self.prediction.dtype)
        prediction[mask] = self.prediction
        scores = None
        if self.scores is not None:
            width = self.scores.shape[1]
            scores = np.full((len(mask), width), 1 / width, np.float32)
            scores[mask] = self.scores
        return Answers(prediction, status, scores)

    @property
    def answered(self) -> NDArray[np.bool_]:
        """Which rows were answered, shape (n,)."""
        given: NDArray[np.bool_] = self.status == ANSWERED
        return given

    def fill_missing(self, truth: NDArray[Any], task: Task) -> Answers:
        """Return answers with every row filled in, for metrics: a row that is not answered counts as wrong, not as
        absent.

        Its class becomes -1, its text None, its number NaN, and its whole probability is on one class that is not the
        true one. For labels, the true ones score minus infinity, and the others infinity.
        """
        lost = ~self.answered
        if not lost.any():
            return self
        prediction = self.prediction.copy()
        prediction[lost] = None if task.in_text else np.nan if task.type == "regression" else -1
        scores = None if self.scores is None else self.scores.copy()
        if scores is not None and task.type == "multilabel":
            scores[lost] = np.where(np.asarray(truth)[lost] > 0, -np.inf, np.inf)
        elif scores is not None:
            wrong = (np.asarray(truth)[lost].astype(np.int64) + 1) % scores.shape[1]
            scores[lost] = np.eye(scores.shape[1], dtype=np.float32)[wrong]
        return Answers(prediction, np.zeros(len(self), np.int8), scores)


def find_differences(left: Answers, right: Answers, task: Task) -> NDArray[np.bool_]:
    """Return which rows have different predictions, shape (n,), apart from rounding: probabilities and numbers may
    differ by `TOLERANCE`, and classes may differ if the two are that close to equally probable."""
    if task.type == "regression":
        unequal = ~np.isclose(left.prediction, right.prediction, rtol=TOLERANCE, atol=1e-6)
    else:
        unequal = left.prediction != right.prediction
    if task.type == "multilabel" and left.scores is not None and right.scores is not None:
        unequal = ~np.isclose(left.scores, right.scores, rtol=TOLERANCE, atol=TOLERANCE).all(axis=1)
    elif left.scores is not None and right.scores is not None:
        moved = abs(left.scores - right.scores).max(axis=1) > TOLERANCE
        unequal = moved | (unequal & (compute_shortfall(left.scores, right.prediction) > TOLERANCE))
    different: NDArray[np.bool_] = (left.status != right.status) | (left.answered & unequal)
    return different


def compute_shortfall(scores: NDArray[np.float32], classes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return how much less probable each row's class is than its most probable one, shape (n,)."""
    gap: NDArray[np.float32] = scores.max(axis=1) - np.take_along_axis(scores, classes[:, None], axis=1)[:, 0]
    return gap
