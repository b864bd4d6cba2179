"""The class probabilities that a metric of `NEEDS = "scores"` reads."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from ..answers import Answers


def get_probabilities(answers: Answers) -> NDArray[np.float32]:
    """The probabilities, shape (rows, classes); `FarshiftError` if the model gave none."""
    if answers.scores is None:
        raise FarshiftError(
            "the model gave classes and no probabilities, which this metric reads: let `predict` give an (n, classes) "
            "array of them, or score another metric"
        )
    return answers.scores
