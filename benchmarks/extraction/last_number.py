"""The answer is the last number in the text, for models that write out their computation."""

from __future__ import annotations

import re
from functools import partial

from ..model import Task
from . import Prediction, parse_prediction

VERSION = 2
TASKS = ("classification", "sequence", "regression")

_SIGN = r"[+\u2010-\u2013\u2212\ufe63\uff0d-]"
"""Plus; minus, and the hyphens and short dashes that are used in its place."""
_NUMBER_1 = (
    r"(?P<sign>(?<![\w)\].])[-+\u2212])?"  # after a word, a number or a bracket, it is an operator
    r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+|(?<![\w.])(?=\.[0-9]))"
    r"(?:\.(?P<decimals>[0-9]+))?"
    r"(?P<exponent>[eE][-+]?[0-9]{1,3}(?!\w))?"
)
_NUMBER = _NUMBER_1.replace(r"[-+\u2212])?", f"{_SIGN})?", 1)


def extract(text: str, task: Task) -> Prediction | None:
    """Extract the last number: an optional sign (a minus may be any hyphen or short dash), digits (optionally with
    commas between thousands), decimals, an exponent.

    It is normalised: a plus sign, commas, leading zeros and trailing zeros of the decimals are removed. For sequences,
    "+1,234.50" gives "1234.5".
    """
    return _extract_last(_NUMBER, text, task)


def _extract_last(pattern: str, text: str, task: Task) -> Prediction | None:
    numbers = list(re.finditer(pattern, text))
    if not numbers:
        return None
    last = numbers[-1]
    integer_part = last["whole"].replace(",", "").lstrip("0") or "0"
    decimals = (last["decimals"] or "").rstrip("0")
    size = f"{integer_part}.{decimals}" if decimals else integer_part
    sign = "-" if last["sign"] not in (None, "+") and size != "0" else ""
    return parse_prediction(f"{sign}{size}{last['exponent'] or ''}", task)


EARLIER = {1: partial(_extract_last, _NUMBER_1)}
"""Version 1: only the hyphen and the minus sign are accepted as minus."""
