"""Common to all label-noise rules: the training rows, and the order in which a draw corrupts them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition
from ..assignment import Assignment
from ..measures.words import read_numeric_column, read_text_column

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class CorruptibleRows:
    """The training rows of a split whose labels are to be corrupted.

    `part` and `truth` have one entry per row of the source; `rows` are the positions of the n training rows in it, and
    `ids` their row ids, both of shape (n,). `stream` names the draws: another draw number gives other noise on the same
    rows.
    """

    part: NDArray[np.str_]
    truth: NDArray[np.int64]
    rows: NDArray[np.int64]
    ids: NDArray[np.uint64]
    stream: str

    @property
    def order(self) -> NDArray[np.int64]:
        """The training rows (0..n-1) in the order in which the draw corrupts them.

        It depends on neither the rate nor the form of the noise: rows that are wrong at 20 % are wrong at 40 % too, and
        two forms of one draw corrupt the same rows, which makes comparisons of them paired.
        """
        return draw_permutation(f"{self.stream}/rows", self.ids)

    def first(self, rate: float) -> NDArray[np.int64]:
        """Return the positions in the source of an exact share `rate` of the training rows."""
        return self.rows[self.order[: round(check_rate(rate) * len(self.rows))]]

    def with_labels(self, places: NDArray[np.int64], labels: NDArray[np.int64]) -> Assignment:
        """Return the assignment that gives `labels` to the rows at `places`. A label equal to the true one overrides
        nothing."""
        given = self.truth.copy()
        given[places] = labels
        return Assignment(part=self.part, label=np.ma.MaskedArray(given, mask=given == self.truth))


def select_training(
    table: pa.Table, *, label: str, classes: int, train: int | dict[str, str], seed: str, draw: int
) -> CorruptibleRows:
    """Select the training rows; all others are `id_test`, with true labels.

    `train` is a number of rows, drawn by `seed` alone (the same for every draw of the noise), or the field and value
    that mark the published training rows, such as {part = "train"}. Labels must be in [0, classes).
    """
    if label in table.column_names and str(table[label].type) == "bool":
        raise BadDefinition(
            f'labels of {label!r} are bool: label noise needs whole numbers; classes = ["{label}"] in [data] makes the '
            "classes 0 (false) and 1 (true) of them"
        )
    truth = read_numeric_column(table, label)
    if truth.dtype.kind != "i":
        raise BadDefinition(f"labels of {label!r} are {truth.dtype}: label noise needs whole numbers")
    if classes < 2:
        raise BadDefinition(f"classes = {classes}: at least 2 are needed")
    if len(truth) and (truth.min() < 0 or truth.max() >= classes):
        raise BadDefinition(f"labels of {label!r} run from {truth.min()} to {truth.max()}, not within 0..{classes - 1}")
    if draw < 1:
        raise BadDefinition(f"draw = {draw}: draws are numbered from 1")
    ids = table["row_id"].to_numpy()
    rows = _select_published(table, train) if isinstance(train, dict) else _draw_positions(ids, train, seed)
    part = np.full(len(truth), "id_test", dtype="U8")
    part[rows] = "train"
    return CorruptibleRows(part, truth.astype(np.int64), rows, ids[rows], f"{seed}/draw {draw}")


def check_label_types(table: pa.Table, label: str, given: str) -> None:
    """Raise `BadDefinition` unless true and observed labels have one type."""
    if absent := [name for name in (label, given) if name not in table.column_names]:
        raise BadDefinition(f"no field {absent[0]!r}")
    if table[label].type != table[given].type:
        raise BadDefinition(
            f"{label!r} is {table[label].type}, and {given!r} is {table[given].type}: they are compared, so make both "
            f'text, or both classes (of data of your own by classes = ["{label}", "{given}"])'
        )


def check_rate(rate: float) -> float:
    """Return `rate` if it is from 0 to 1; else raise `BadDefinition`."""
    if not 0 <= rate <= 1:
        raise BadDefinition(f"rate = {rate}: a share of the training labels, from 0 to 1")
    return rate


def _draw_positions(ids: NDArray[np.uint64], count: int, seed: str) -> NDArray[np.int64]:
    if not 0 < count < len(ids):
        raise BadDefinition(f"train = {count}, but there are {len(ids)} rows")
    return np.sort(draw_permutation(f"{seed}/train", ids)[:count])


def _select_published(table: pa.Table, train: dict[str, str]) -> NDArray[np.int64]:
    import pyarrow.compute as pc

    if len(train) != 1 or not all(isinstance(value, str) for value in train.values()):
        raise BadDefinition(f"train = {train}: one field, and the text that marks a training row")
    ((field, value),) = train.items()
    rows = np.flatnonzero(pc.equal(read_text_column(table, field), value).to_numpy(zero_copy_only=False))
    if not 0 < len(rows) < table.num_rows:
        raise BadDefinition(f"train = {train} marks {len(rows)} of {table.num_rows} rows: some must train, some test")
    return rows
