"""The whole text is the answer."""

from __future__ import annotations

from ..model import Task
from . import Prediction, parse_prediction

VERSION = 1
TASKS = ("classification", "sequence", "regression")


def extract(text: str, task: Task) -> Prediction | None:
    """The text without the white space around it."""
    return parse_prediction(text, task)
