"""Token accuracy: the share of positions at which the output sequence has the right token.

Positions are those of the longer of the two sequences: what is missing or left over is wrong. One token put in or left
out moves all that follow it; `edit_similarity` forgives that.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..answers import Answers
from ..model import Task
from ._tokens import similarities

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)


def per_row(answers: Answers, truth: NDArray[Any], task: Task) -> NDArray[np.float64]:
    """Right positions by the longer length; 1 where both are empty, 0 for a lost row."""
    return similarities(answers, truth, task, _share)


def _share(given: Sequence[str], expected: Sequence[str]) -> float:
    longer = max(len(given), len(expected))
    return sum(map(eq, given, expected)) / longer if longer else 1.0
