"""Class probabilities for metrics with `NEEDS = "scores"`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.errors import FarshiftError
from ..answers import Answers


def get_probabilities(answers: Answers) -> NDArray[np.float32]:
    """Return the probabilities, shape (rows, classes); raises `FarshiftError` if the model returned none."""
    if answers.scores is None:
        raise FarshiftError(
            "this metric requires class probabilities, but the model returned classes: let `predict` return an (n, "
            "classes) array, or use another metric"
        )
    return answers.scores
