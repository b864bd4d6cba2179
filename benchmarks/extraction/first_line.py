"""The first line that is not blank is the answer."""

from __future__ import annotations

from ..model import Task
from . import Prediction, parse_prediction

VERSION = 1
TASKS = ("classification", "sequence", "regression")


def extract(text: str, task: Task) -> Prediction | None:
    """The first line that is not blank; what follows it (an explanation, a further example) does not count."""
    lines = text.strip().splitlines()
    return parse_prediction(lines[0], task) if lines else None
