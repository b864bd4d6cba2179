"""Corrupted labels: some training labels are wrong, by a known process and at a known rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.draws import draw_below, draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_numeric_column

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
    truth = read_numeric_column(table, label)
    if truth.min() < 0 or truth.max() >= classes:
        raise BadDefinition(f"labels of {label!r} run from {truth.min()} to {truth.max()}, not within 0..{classes - 1}")
    if not 0 < train_rows < len(truth):
        raise BadDefinition(f"train_rows = {train_rows}, but there are {len(truth)} rows")
    if not 0 <= rate <= 1:
        raise BadDefinition(f"rate = {rate}: a share of the training labels, from 0 to 1")
    ids = table["row_id"].to_numpy()
    train = draw_permutation(f"{seed}/train", ids)[:train_rows]
    part = np.full(len(truth), "id_test", dtype="U8")
    part[train] = "train"
    corrupted = train[draw_permutation(f"{seed}/corrupted", ids[train])[: round(rate * train_rows)]]
    noisy = truth.astype(np.int64)
    noisy[corrupted] = (truth[corrupted] + 1 + draw_below(f"{seed}/label", ids[corrupted], classes - 1)) % classes
    untouched = np.ones(len(truth), bool)
    untouched[corrupted] = False
    return Assignment(part=part, label=np.ma.MaskedArray(noisy, mask=untouched))
