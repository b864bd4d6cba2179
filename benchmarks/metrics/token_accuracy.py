"""Token accuracy: the share of positions at which the output sequence has the correct token.

Positions are those of the longer of the two sequences: missing and superfluous tokens are wrong. An inserted or missing
token shifts all that follow it; `edit_similarity` tolerates that.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import eq

from ._base import Answers, Floats, Task, Values, compute_similarities, expect_zero

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = expect_zero


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """Correct positions divided by the longer length; 1 if both are empty, 0 for a row without an answer."""
    return compute_similarities(answers, truth, task, _compute_share)


def _compute_share(given: Sequence[str], expected: Sequence[str]) -> float:
    longer = max(len(given), len(expected))
    return sum(map(eq, given, expected)) / longer if longer else 1.0
