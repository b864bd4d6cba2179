"""Corrupted labels: some training labels are wrong, by a known process and at a known rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.draws import draw_below, draw_permutation
from ..assignment import Assignment
from ._training import check_rate, select_training

if TYPE_CHECKING:
    import pyarrow as pa


def symmetric_exclusive(
    table: pa.Table, *, label: str, classes: int, rate: float, train_rows: int, seed: str
) -> Assignment:
    """Symmetric label noise over the other classes. `train_rows` rows, drawn by `seed`, train; the others are
    `id_test`. An exact share `rate` of the training labels is redrawn uniformly among the *other* classes, so that the
    stated rate is the true one (the inclusive form, over all classes, leaves 1/classes of the "corrupted" labels
    correct: Doshi et al. 2024, arXiv 2310.13061, as released). The corrupted rows are drawn at random.

    Parameters:
        rate: the share of the training labels that become wrong, from 0 to 1.
        train_rows: the number of training rows.
    """
    rows = select_training(table, label=label, classes=classes, train=train_rows, seed=seed, draw=1)
    wrong = rows.rows[draw_permutation(f"{seed}/corrupted", rows.ids)[: round(check_rate(rate) * len(rows.rows))]]
    step = 1 + draw_below(f"{seed}/label", table["row_id"].to_numpy()[wrong], classes - 1)
    return rows.with_labels(wrong, (rows.truth[wrong] + step) % classes)
