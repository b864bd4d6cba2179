"""Negative log-likelihood: minus the natural logarithm of the probability given to the true class (log loss).

Probabilities are clipped at float32's epsilon: full confidence in a wrong class costs at most 15.9 nats, so no single
row makes the mean infinite.
"""

from __future__ import annotations

from math import inf

import numpy as np

from ._base import Answers, Floats, Task, Values, get_probabilities

_LEAST = float(np.finfo(np.float32).eps)

VERSION = 1
TASKS = ("classification",)
NEEDS = "scores"
BETTER = "lower"
BOUNDS = (0.0, inf)


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """-ln p of the true class, in nats; the upper bound for a row without an answer."""
    scores = get_probabilities(answers)
    given = scores[np.arange(len(scores)), truth].astype(np.float64)
    nats: Floats = -np.log(np.clip(given, _LEAST, 1.0))
    return nats


def chance(task: Task) -> float:
    """Return ln(classes) nats, the score of uniform probabilities."""
    return float(np.log(task.classes or 1))
