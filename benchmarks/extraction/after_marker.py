"""The text after the last "Answer:" is the answer, for models that are prompted to reason first."""

from __future__ import annotations

import re

from ..model import Task
from . import Prediction, parse_prediction

VERSION = 1
TASKS = ("classification", "sequence", "regression")

_MARKER = re.compile(r"\banswer:(?:\*\*)?", re.IGNORECASE)
"""The marker in any case, optionally followed by the end of Markdown's bold type, as chat models write it."""


def extract(text: str, task: Task) -> Prediction | None:
    """Extract the answer from the text after the last marker; None without a marker."""
    markers = list(_MARKER.finditer(text))
    return parse_prediction(text[markers[-1].end() :], task) if markers else None
