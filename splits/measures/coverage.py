"""Which rows lie within coverage of training: reached from a training row by exchanging fragments that act alike.

Chang et al. 2025, "The Coverage Principle" (arXiv 2505.20278). A row is a fragment of its inputs and a context, the
rest of them. Fragments act alike where they give equal results in every context: those of one state, such as a first
hop's value. Two of one state are known to, with evidence k, where training has both in k contexts at least; they may
then be exchanged, also by way of third ones. Equivalences are the true ones, as the authors' `determine_coverage.py`
has them with `--ground_truth`: fragments that agree by chance in the few contexts that training has do not count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition

Flags = NDArray[np.bool_]
Codes = NDArray[np.int64]


def find_exchangeable(seen: Flags, evidence: int) -> Flags:
    """The rows of one state within coverage, shape (fragments, contexts), of those that training has."""
    shared = seen.astype(np.float32) @ seen.T.astype(np.float32)
    alike = (shared >= evidence) | np.eye(len(seen), dtype=bool)
    while True:
        further = alike.astype(np.float32) @ alike.astype(np.float32) > 0
        if (further == alike).all():
            return np.asarray(alike.astype(np.float32) @ seen.astype(np.float32) > 0)
        alike = further


def find_covered(train: Codes, test: Codes, evidence: int) -> Flags:
    """Which of `test` lie within coverage of `train`: both rows of state, fragment and context, shape (rows, 3).
    `BadDefinition` for evidence that is not positive."""
    both = np.concatenate([train, test])
    origin = np.concatenate([np.zeros(len(train), np.int64), np.ones(len(test), np.int64)])
    is_covered = np.zeros(len(test), bool)
    for rows, fragment, context, shape in _iterate_states(both, evidence):
        old = origin[rows] == 0
        seen = np.zeros(shape, bool)
        seen[fragment[old], context[old]] = True
        is_covered[rows[~old] - len(train)] = find_exchangeable(seen, evidence)[fragment[~old], context[~old]]
    return is_covered


def count_rows_to_cover(ordered: Codes, share: float, evidence: int) -> int:
    """The fewest of the first rows of `ordered`, shape (rows, 3), from which `share` of all of them are covered."""
    tables = []
    for rows, fragment, context, shape in _iterate_states(ordered, evidence):
        turn = np.full(shape, len(ordered), np.int64)
        turn[fragment, context] = rows
        tables.append(turn)
    few, enough = 0, len(ordered)
    while few < enough:
        count = (few + enough) // 2
        reached = sum(int((find_exchangeable(turn < count, evidence) & (turn < len(ordered))).sum()) for turn in tables)
        few, enough = (few, count) if reached >= share * len(ordered) else (count + 1, enough)
    return enough


def _iterate_states(rows: Codes, evidence: int) -> Iterator[tuple[Codes, Codes, Codes, tuple[int, int]]]:
    """Of each state: the places of its rows, their fragments and contexts numbered from 0, and how many there are."""
    if evidence < 1:
        raise BadDefinition(f"evidence = {evidence}: use 1 or more contexts")
    order = np.argsort(rows[:, 0], kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(rows[order, 0])) + 1):
        fragments, fragment = np.unique(rows[here, 1], return_inverse=True)
        contexts, context = np.unique(rows[here, 2], return_inverse=True)
        yield here, fragment.ravel(), context.ravel(), (len(fragments), len(contexts))
