"""What follows the last "Answer:" is the answer: for models that are asked to reason first."""

from __future__ import annotations

import re

from ..model import Task
from . import Prediction, parse_prediction

VERSION = 1
TASKS = ("classification", "sequence", "regression")

_MARKER = re.compile(r"\banswer:(?:\*\*)?", re.IGNORECASE)
"""In any case, and with the end of Markdown's bold type, as chat models write it."""


def extract(text: str, task: Task) -> Prediction | None:
    """The text after the last marker; None without a marker."""
    markers = list(_MARKER.finditer(text))
    return parse_prediction(text[markers[-1].end() :], task) if markers else None
