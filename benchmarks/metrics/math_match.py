"""Math match: the share of rows whose answer is the expected one as mathematics is written in LaTeX.

Both are normalised, with the steps of the check that MATH was released with (Hendrycks et al. 2021, arXiv 2103.03874)
that do not change a value: no spaces, dollar signs, \\left, \\right, degree and percent signs, or final full stop;
\\dfrac and \\tfrac are \\frac, and a/b and \\frac12 are \\frac{a}{b} and \\frac{1}{2}. Two plain numbers match if they
are equal as decimals, with or without commas between thousands. Equal values in other forms (a fraction and a decimal)
do not match.
"""

from __future__ import annotations

import re
from decimal import Decimal

import numpy as np

from ._base import Answers, Floats, Task, Values, expect_zero

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = expect_zero

_LEFT_OUT = re.compile(r"\s|\\!|\\,|\\;|\\ |\\?\$|\\left(?![a-z])|\\right(?![a-z])|\^\\circ|\^{\\circ}|\\?%")
_TEXT = re.compile(r"^\\(?:text|mathrm|mbox){([^{}]*)}$")
_SHORT = re.compile(r"\\frac(?:([0-9a-z])|{([^{}]*)})(?:([0-9a-z])|{([^{}]*)})")
_RATIO = re.compile(r"(-?[0-9]+)/([0-9]+)")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)?(?:\.[0-9]*)?")


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """1 if the normalised texts are equal, else 0; shape (rows,). A missing answer never matches."""
    pairs = zip(answers.prediction, truth, strict=True)
    return np.array([given is not None and normalise(given) == normalise(true) for given, true in pairs], np.float64)


def normalise(text: str) -> str:
    """Return the answer in the form in which it is compared."""
    text = _LEFT_OUT.sub("", text).rstrip(".")
    text = _TEXT.sub(r"\1", text).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    if ratio := _RATIO.fullmatch(text):
        text = f"\\frac{{{ratio[1]}}}{{{ratio[2]}}}"
    text = _SHORT.sub(lambda match: f"\\frac{{{match[1] or match[2]}}}{{{match[3] or match[4]}}}", text)
    if any(sign.isdigit() for sign in text) and _NUMBER.fullmatch(text):
        number = Decimal(text.replace(",", ""))
        return f"{number.normalize():f}" if number else "0"
    return text
