"""The answer is the content of the last \\boxed{..} in the text, for models that write out a solution in LaTeX."""

from __future__ import annotations

from ..model import Task
from . import Prediction, parse_prediction

VERSION = 1
TASKS = ("classification", "sequence", "regression")
_BOX = "\\boxed{"


def extract(text: str, task: Task) -> Prediction | None:
    """Extract the content of the last complete box, whose braces may be nested."""
    end = len(text)
    while (start := text.rfind(_BOX, 0, end)) >= 0:
        first, depth = start + len(_BOX), 1
        for position in range(first, len(text)):
            depth += (text[position] == "{") - (text[position] == "}")
            if depth == 0:
                return parse_prediction(text[first:position], task)
        end = start
    return None
