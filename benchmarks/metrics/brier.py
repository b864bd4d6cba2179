"""Brier score: the squared distance between the predicted probabilities and the true class.

Brier, "Verification of forecasts expressed in terms of probability" (1950): summed over all classes, in [0, 2]; for two
classes it is twice the form with one probability.
"""

from __future__ import annotations

import numpy as np

from ._base import Answers, Floats, Task, Values, get_probabilities

VERSION = 1
TASKS = ("classification",)
NEEDS = "scores"
BETTER = "lower"
BOUNDS = (0.0, 2.0)


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """The sum over classes of (probability - 1[true class])^2; 2 for a row without an answer."""
    scores = get_probabilities(answers)
    own = scores[np.arange(len(scores)), truth].astype(np.float64)
    squares = np.einsum("ij,ij->i", scores, scores, dtype=np.float64)
    # (p - 1)^2 = p^2 + 1 - 2p. Clipped, as rounding or a row with a sum slightly above 1 could exceed the bounds.
    distance: Floats = np.clip(squares + (1 - 2 * own), *BOUNDS)
    return distance


def chance(task: Task) -> float:
    """Return 1 - 1/classes, the score of uniform probabilities."""
    return 1 - 1 / (task.classes or 1)
