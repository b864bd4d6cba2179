"""The answer is the whole text."""

from __future__ import annotations

from ..model import Task
from . import Prediction, parse_prediction

VERSION = 1
TASKS = ("classification", "sequence", "regression")


def extract(text: str, task: Task) -> Prediction | None:
    """Extract the answer from the whole text, without surrounding white space."""
    return parse_prediction(text, task)
