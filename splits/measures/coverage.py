"""Coverage: which rows can be reached from a training row by exchanging functionally equivalent fragments.

Chang et al. 2025, "The Coverage Principle" (arXiv 2505.20278). A row consists of a fragment of its inputs and a context
(the other inputs). Fragments are equivalent if they give equal results in every context: those of one state, such as
the value of a first hop. With evidence k, two fragments of one state may be exchanged if training has both in at least
k contexts; the relation is transitive. Equivalences are the true ones, as in the authors' `determine_coverage.py` with
`--ground_truth`: fragments that agree by chance in the few contexts of training do not count.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition

Flags = NDArray[np.bool_]
Codes = NDArray[np.int64]


def find_exchangeable(seen: Flags, evidence: int) -> Flags:
    """Return the covered (fragment, context) pairs of one state, shape (fragments, contexts), from those in
    training."""
    shared = seen.astype(np.float32) @ seen.T.astype(np.float32)
    alike = (shared >= evidence) | np.eye(len(seen), dtype=bool)
    while True:
        further = alike.astype(np.float32) @ alike.astype(np.float32) > 0
        if (further == alike).all():
            return np.asarray(alike.astype(np.float32) @ seen.astype(np.float32) > 0)
        alike = further


def find_covered(train: Codes, test: Codes, evidence: int) -> Flags:
    """Return which rows of `test` are covered by `train`; both have columns state, fragment and context, shape (rows,
    3). `BadDefinition` if evidence is not positive."""
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
    """Return the smallest n such that the first n rows of `ordered`, shape (rows, 3), cover `share` of all rows."""
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
    """Yield for each state the positions of its rows, the indices of their fragments and contexts, and their
    numbers."""
    if evidence < 1:
        raise BadDefinition(f"evidence = {evidence}: use 1 or more contexts")
    order = np.argsort(rows[:, 0], kind="stable")
    for here in np.split(order, np.flatnonzero(np.diff(rows[order, 0])) + 1):
        fragments, fragment = np.unique(rows[here, 1], return_inverse=True)
        contexts, context = np.unique(rows[here, 2], return_inverse=True)
        yield here, fragment.ravel(), context.ravel(), (len(fragments), len(contexts))
