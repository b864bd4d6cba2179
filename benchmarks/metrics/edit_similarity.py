"""Edit similarity: one minus the Levenshtein distance between two sequences, divided by the length of the longer.

The distance is the minimum number of tokens to insert, delete or replace (Levenshtein, Soviet Physics Doklady 1966). It
is computed one row of the dynamic programming table at a time, as differences between neighbours in the bits of two
integers (Myers, J. ACM 46(3), 1999, in the form of Hyyrö, 2003), so that even the longest texts need only seconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from ._base import Answers, Floats, Task, Values, compute_similarities, expect_zero

VERSION = 1
TASKS = ("sequence",)
NEEDS = "prediction"
BETTER = "higher"
BOUNDS = (0.0, 1.0)
chance = expect_zero


def per_row(answers: Answers, truth: Values, task: Task) -> Floats:
    """1 - distance / the longer length; 1 if both are empty, 0 for a row without an answer."""
    return compute_similarities(answers, truth, task, _compute_similarity)


def _compute_similarity(given: Sequence[str], expected: Sequence[str]) -> float:
    longer = max(len(given), len(expected))
    return 1.0 - compute_levenshtein(given, expected) / longer if longer else 1.0


def compute_levenshtein(left: Sequence[str], right: Sequence[str]) -> int:
    """The minimum number of insertions, deletions and replacements that turn one sequence into the other."""
    start = _count_common_prefix(left, right)
    left, right = left[start:], right[start:]
    end = _count_common_prefix(left[::-1], right[::-1])
    short, long = sorted((left[: len(left) - end], right[: len(right) - end]), key=len)
    return _compute_distance(short, long) if short else len(long)


def _count_common_prefix(left: Sequence[str], right: Sequence[str]) -> int:
    """The length of the longest common prefix."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(left), len(right)))


def _compute_distance(short: Sequence[str], long: Sequence[str]) -> int:
    """The distance of two non-empty sequences.

    The table's entry (i, j) is the distance of the first i tokens of `long` and the first j of `short`; after j of them
    bit i - 1 of `up` (`down`) means that entry (i, j) is one more (less) than (i - 1, j), of `rise` (`fall`) than
    (i, j - 1), and of `level` that it equals (i - 1, j - 1).
    """
    where = dict.fromkeys(short, 0)
    for at, token in enumerate(long):
        if token in where:
            where[token] |= 1 << at
    full, last = (1 << len(long)) - 1, 1 << (len(long) - 1)
    up, down, distance = full, 0, len(long)
    for token in short:
        same = where[token]
        level = (((same & up) + up) ^ up) | same | down
        rise, fall = down | (full & ~(level | up)), up & level
        distance += bool(rise & last) - bool(fall & last)
        rise, fall = rise << 1 | 1, fall << 1
        up, down = full & (fall | ~(level | rise)), full & rise & level
    return distance
