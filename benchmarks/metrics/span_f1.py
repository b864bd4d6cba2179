"""Span F1: the F measure of the words of answers of one or several spans (Dua et al. 2019, DROP, arXiv 1903.00161).

As in DROP's evaluation: words are separated at spaces and hyphens, in lower case, without ASCII punctuation and
articles, and numbers are compared as numbers. Output and true spans are paired one to one so that the sum of the F
measures of their sets of words is largest, and that sum is divided by the larger number of spans; a true span with
numbers is only paired with a span that has one of them. Spans have "; " between them, accepted answers in the label
" | ", of which the best counts. Values are not rounded to two digits, as DROP's are.
"""

from __future__ import annotations

import re
import string

import numpy as np

from ._base import Answers, Floats, Task, Values, expect_zero

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = expect_zero

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """The measure against the best accepted answer; shape (rows,). 0 for a missing answer."""
    values = np.zeros(len(truth))
    for row, (given, accepted) in enumerate(zip(answers.prediction, truth, strict=True)):
        if given is not None:
            values[row] = max(compute_f(given, answer) for answer in accepted.split(" | "))
    return values


def compute_f(given: str, expected: str) -> float:
    """Compute the mean F measure of the paired spans of two answers."""
    from scipy.optimize import linear_sum_assignment

    left, right = ([find_words(span) for span in answer.split("; ")] for answer in (given, expected))
    table = np.array([[_compare(span, true) for span in left] for true in right])
    return float(table[linear_sum_assignment(table, maximize=True)].sum() / max(table.shape))


def _compare(given: set[str], expected: set[str]) -> float:
    """Compute the F measure of two sets of words, without any word 1; 0 without a number that `expected` has."""
    numbers = {word for word in expected if _is_number(word)}
    if numbers and not numbers & given:
        return 0.0
    precision = len(given & expected) / len(given) if given else 1.0
    recall = len(given & expected) / len(expected) if expected else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def find_words(text: str) -> set[str]:
    """Return the different words of a span, normalised."""
    words: set[str] = set()
    for token in re.split("[ -]", text.lower()):
        plain = token if _is_number(token) else token.translate(_WITHOUT_PUNCTUATION)
        words.update(_ARTICLES.sub(" ", str(float(plain)) if _is_number(plain) else plain).split())
    return words


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
