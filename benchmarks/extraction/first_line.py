"""The answer is the first line that is not blank."""

from __future__ import annotations

from ..model import Task
from . import Prediction, parse_prediction

VERSION = 1
TASKS = ("classification", "sequence", "regression")


def extract(text: str, task: Task) -> Prediction | None:
    """Extract the answer from the first line that is not blank; the rest (an explanation, another example) is
    ignored."""
    lines = text.strip().splitlines()
    return parse_prediction(lines[0], task) if lines else None
