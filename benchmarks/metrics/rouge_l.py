"""ROUGE-L: the F measure of the longest common subsequence of words (Lin 2004, ROUGE: A Package for Automatic
Evaluation of Summaries).

With l the length of the longest common subsequence of the output and a reference, precision is l over the words of the
output, recall l over those of the reference, and the measure their harmonic mean; of several references (in the label
with " | " between them) the best counts, as in Super-NaturalInstructions (Wang et al. 2022, arXiv 2204.07705). Words
are runs of ASCII letters and digits in lower case, as in the package rouge-score, without its Porter stemmer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ._base import Answers, Floats, Task, Values, expect_zero

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = expect_zero

_WORD = re.compile("[a-z0-9]+")


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """The measure against the best reference; shape (rows,). 0 for a missing answer."""
    values = np.zeros(len(truth))
    for row, (given, accepted) in enumerate(zip(answers.prediction, truth, strict=True)):
        if given is not None:
            values[row] = max(compute_f(given, reference) for reference in accepted.split(" | "))
    return values


def split_words(text: str) -> list[str]:
    """Split a text into runs of ASCII letters and digits, in lower case."""
    return _WORD.findall(text.lower())


def compute_f(given: str, expected: str) -> float:
    """Compute 2 l / (words of both), the harmonic mean of precision and recall: 0 without a common word, 1 for equal
    texts."""
    left, right = split_words(given), split_words(expected)
    return 1.0 if given == expected else 2 * count_common(left, right) / max(1, len(left) + len(right))


def count_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Count the words of the longest common subsequence; a column of the table at a time, its steps in the bits of an
    integer (Hyyrö 2004, Bit-parallel LCS-length computation revisited)."""
    where: dict[str, int] = {}
    for position, word in enumerate(left):
        where[word] = where.get(word, 0) | 1 << position
    full = (1 << len(left)) - 1
    flat = full  # a bit is 0 where the table's column rises
    for word in right:
        same = flat & where.get(word, 0)
        flat = ((flat + same) | (flat - same)) & full
    return len(left) - flat.bit_count()
