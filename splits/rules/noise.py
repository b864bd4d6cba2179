"""Class-conditional label noise: symmetric (both forms), pair-flip, and any transition matrix.

Every rule corrupts an exact number of rows, so that the stated rate is the true one; the corrupted rows and their
labels are a pure function of row id and `draw`. Test rows keep their labels. Parameters that all rules share: `train`
(a number of rows, or {field = value}) and `seed` fix the training rows, `draw` the noise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_below
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ._training import CorruptibleRows, check_rate, select_training

if TYPE_CHECKING:
    import pyarrow as pa


def symmetric_exclusive(
    table: pa.Table, *, label: str, classes: int, rate: float, train: int | dict[str, str], seed: str, draw: int
) -> Assignment:
    """A share `rate` of the training labels becomes one of the *other* classes, each equally likely.

    T = 1 - rate on the diagonal, rate / (classes - 1) off it (van Rooyen et al. 2015, arXiv 1505.07634).
    """
    rows = select_training(table, label=label, classes=classes, train=train, seed=seed, draw=draw)
    wrong = rows.first(rate)
    step = 1 + draw_below(f"{rows.stream}/other class", table["row_id"].to_numpy()[wrong], classes - 1)
    return rows.with_labels(wrong, (rows.truth[wrong] + step) % classes)


def symmetric_inclusive(
    table: pa.Table, *, label: str, classes: int, rate: float, train: int | dict[str, str], seed: str, draw: int
) -> Assignment:
    """A share `rate` of the training labels is redrawn over *all* classes, including the true one.

    About rate / classes of the labels stay correct: the true rate, which the audit reports, is near
    rate * (classes - 1) / classes. A rate of 1 gives the random labels of Zhang et al. 2017 (arXiv 1611.03530).
    """
    rows = select_training(table, label=label, classes=classes, train=train, seed=seed, draw=draw)
    redrawn = rows.first(rate)
    return rows.with_labels(
        redrawn, draw_below(f"{rows.stream}/any class", table["row_id"].to_numpy()[redrawn], classes)
    )


def pair_flip(
    table: pa.Table, *, label: str, classes: int, rate: float, train: int | dict[str, str], seed: str, draw: int
) -> Assignment:
    """Pair-flip noise. An exact share `rate` of each class becomes the next class, the last one the first (Han et al.
    2018, Co-teaching, arXiv 1804.06872). At a rate of 0.5 and more the wrong class is as frequent as the right one."""
    rows = select_training(table, label=label, classes=classes, train=train, seed=seed, draw=draw)
    rank, size = _rank_in_class(rows)
    wrong = rows.rows[rank < np.rint(check_rate(rate) * size)]
    return rows.with_labels(wrong, (rows.truth[wrong] + 1) % classes)


def asymmetric(
    table: pa.Table,
    *,
    label: str,
    classes: int,
    transitions: dict[str, dict[str, float]],
    train: int | dict[str, str],
    seed: str,
    draw: int,
) -> Assignment:
    """Corrupt labels by a transition matrix: transitions = {"7" = {"1" = 0.4}} labels 40 % of the sevens as ones. The
    diagonal is implied; classes without a line keep their labels. Each share of a class is exact to within one row
    (Patrini et al. 2017, arXiv 1609.03683, with the pairs of their section 5 for MNIST).

    Parameters:
        transitions: for each class, by its number as text, the share of it that is labelled as each other class.
    """
    by_class = _check_transitions(transitions, classes)
    rows = select_training(table, label=label, classes=classes, train=train, seed=seed, draw=draw)
    rank, size = _rank_in_class(rows)
    truth = rows.truth[rows.rows]
    given = truth.copy()
    for true, shares in by_class.items():
        used_share = 0.0
        for wrong, share in shares.items():
            inside = (
                (truth == true) & (rank >= np.rint(used_share * size)) & (rank < np.rint((used_share + share) * size))
            )
            given[inside] = wrong
            used_share += share
    return rows.with_labels(rows.rows, given)


def _rank_in_class(rows: CorruptibleRows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return each training row's rank, from 0, within its class in the order of the draw, and the class's size; both of
    shape (n,)."""
    truth = rows.truth[rows.rows]
    order = rows.order
    by_class = order[np.argsort(truth[order], kind="stable")]
    _, first, count = np.unique(truth[by_class], return_index=True, return_counts=True)
    rank, size = np.empty_like(truth), np.empty_like(truth)
    rank[by_class] = np.arange(len(truth)) - np.repeat(first, count)
    size[by_class] = np.repeat(count, count)
    return rank, size


def _check_transitions(transitions: dict[str, dict[str, float]], classes: int) -> dict[int, dict[int, float]]:
    """Return the transitions with integers for classes, sorted; `BadDefinition` names an invalid line."""
    if not transitions:
        raise BadDefinition("transitions: no class changes: give at least one")
    by_class: dict[int, dict[int, float]] = {}
    for true, shares in transitions.items():
        by_class[_parse_class(true, classes)] = {
            _parse_class(wrong, classes): check_rate(share) for wrong, share in shares.items()
        }
    for klass, class_shares in by_class.items():
        if klass in class_shares or sum(class_shares.values()) > 1 + 1e-9:
            raise BadDefinition(
                f"transitions of class {klass}: shares of *other* classes, at most 1 in all: {class_shares}"
            )
    return {klass: dict(sorted(class_shares.items())) for klass, class_shares in sorted(by_class.items())}


def _parse_class(name: str, classes: int) -> int:
    if not name.isdecimal() or int(name) >= classes:
        raise BadDefinition(f"transitions: there is no class {name!r}; classes are 0..{classes - 1}")
    return int(name)
