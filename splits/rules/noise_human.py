"""Human label noise: training labels by annotators, true test labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_names, read_numeric_column
from ._training import check_label_types, select_training

if TYPE_CHECKING:
    import pyarrow as pa


def annotated(table: pa.Table, *, label: str, given: str, classes: int, train: dict[str, str]) -> Assignment:
    """The published training rows have the label of the field `given` if it differs from the true one; all others are
    `id_test` (Wei et al. 2022, CIFAR-N, arXiv 2110.12088).

    Parameters:
        given: the field of the label that people gave.
        train: the field and the value that mark the published training rows, such as `{ part = "train" }`.
    """
    rows = select_training(table, label=label, classes=classes, train=train, seed="", draw=1)
    check_label_types(table, label, given)
    labels = read_numeric_column(table, given)[rows.rows].astype(np.int64)
    if len(labels) and (labels.min() < 0 or labels.max() >= classes):
        raise BadDefinition(
            f"labels of {given!r} run from {labels.min()} to {labels.max()}, not within 0..{classes - 1}"
        )
    return rows.with_labels(rows.rows, labels)


def annotators_apart(
    table: pa.Table,
    *,
    label: str,
    given: str,
    annotator: str,
    share: float,
    classes: int,
    train: dict[str, str],
    seed: str,
) -> Assignment:
    """Like `annotated`, but only rows of a `share` of the annotators, drawn by `seed`, train. The rows of the other
    annotators are `ood_test`, with true labels: learning the habits of single annotators does not help there. The group
    is the annotator.

    Parameters:
        given: the field of the label that people gave.
        annotator: the field with the annotator.
        share: the share of the annotators whose rows train, from 0 to 1.
        train: the field and the value that mark the published training rows, such as `{ part = "train" }`.
    """
    if not 0 < share < 1:
        raise BadDefinition(f"share = {share}: between 0 and 1, a part of the annotators")
    outcome = annotated(table, label=label, given=given, classes=classes, train=train)
    who = read_names(table, annotator)
    is_train = outcome.part == "train"
    people = np.unique(who[is_train])
    training_annotators = people[
        draw_permutation(seed, np.arange(len(people), dtype=np.uint64))[: round(share * len(people))]
    ]
    held_out = is_train & ~np.isin(who, training_annotators)
    outcome.part[held_out] = "ood_test"
    if outcome.label is not None:
        outcome.label[held_out] = np.ma.masked
    outcome.group = np.where(is_train, who, "none")
    return outcome
