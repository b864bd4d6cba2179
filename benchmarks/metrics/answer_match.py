"""Answer match: the share of rows whose text is one of the accepted answers, without case, punctuation and articles.

The normalisation is SQuAD's (Rajpurkar et al. 2016, arXiv 1606.05250): lower case, no ASCII punctuation, no "a", "an"
and "the", single spaces. Accepted answers stand in the label with " | " between them.
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
    """1 if the normalised text equals a normalised accepted answer, else 0; shape (rows,). A missing answer never
    matches."""
    pairs = zip(answers.prediction, truth, strict=True)
    return np.array([_matches(given, accepted) for given, accepted in pairs], np.float64)


def _matches(given: str | None, accepted: str) -> bool:
    return given is not None and normalise(given) in map(normalise, accepted.split(" | "))


def normalise(text: str) -> str:
    """Return the text in lower case without punctuation, articles and superfluous spaces."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())
