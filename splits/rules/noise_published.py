"""Label noise published together with true labels: distant supervision, annotators, an earlier version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ..assignment import Assignment
from ._conditions import match_conditions
from ._training import check_label_types, check_rate

if TYPE_CHECKING:
    import pyarrow as pa


def relabelled(table: pa.Table, *, label: str, given: str, field: str, parts: dict[str, str]) -> Assignment:
    """Train on published wrong labels, test on the true ones. `parts` maps each published part (`field`) to a part;
    rows of other published parts are dropped. Training rows have the label of the field `given` if it differs from the
    true one; validation and test rows keep the true labels. Labels may be numbers or texts, such as the tags of a
    sentence.

    Parameters:
        given: the field with the observed label.
        field: the field with the published part.
        parts: the part of each published part.
    """
    part = np.full(table.num_rows, "", dtype="U8")
    for origin, name in parts.items():
        part[match_conditions(table, {field: [origin]})] = name
    return _assign_given_labels(table, label, given, part)


def share(table: pa.Table, *, label: str, given: str, train: float, seed: str) -> Assignment:
    """A share `train` of the rows, drawn by `seed`, trains, with the label of the field `given` if it differs from the
    true one; the others are `id_test`, with true labels.

    Parameters:
        given: the field with the observed label.
        train: the share of the rows that trains, from 0 to 1.
    """
    ids = table["row_id"].to_numpy()
    part = np.full(len(ids), "id_test", dtype="U8")
    part[draw_permutation(seed, ids)[: round(check_rate(train) * len(ids))]] = "train"
    return _assign_given_labels(table, label, given, part)


def _assign_given_labels(table: pa.Table, label: str, given: str, part: NDArray[np.str_]) -> Assignment:
    check_label_types(table, label, given)
    true, given_labels = (np.array(table[name].to_pylist()) for name in (label, given))
    wrong = (part == "train") & (true != given_labels)
    return Assignment(part=part, label=np.ma.MaskedArray(given_labels, mask=~wrong))
