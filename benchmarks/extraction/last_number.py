"""The last number in the text is the answer: for models that write out their computation."""

from __future__ import annotations

import re

from ..model import Task
from . import Prediction, prediction

VERSION = 1
TASKS = ("classification", "sequence", "regression")

_NUMBER = re.compile(
    r"(?P<sign>(?<![\w)\].])[-+\u2212])?"  # after a word, a number or a bracket it is an operator
    r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+|(?<![\w.])(?=\.[0-9]))"
    r"(?:\.(?P<decimals>[0-9]+))?"
    r"(?P<exponent>[eE][-+]?[0-9]{1,3}(?!\w))?"
)


def extract(text: str, task: Task) -> Prediction | None:
    """The last number: an optional sign, digits (in thousands by commas, or without), decimals, an exponent.

    It is normalised: a plus sign, commas, leading zeros and trailing zeros of the decimals are removed. So for
    sequences "+1,234.50" gives "1234.5".
    """
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    last = numbers[-1]
    whole = last["whole"].replace(",", "").lstrip("0") or "0"
    decimals = (last["decimals"] or "").rstrip("0")
    size = f"{whole}.{decimals}" if decimals else whole
    sign = "-" if last["sign"] in ("-", "\u2212") and size != "0" else ""
    return prediction(f"{sign}{size}{last['exponent'] or ''}", task)
