"""Subpopulation shift: training and test have the same cells (label x attribute) in different proportions.

The four basic shifts of Yang et al. 2023 (Change is Hard, arXiv 2302.12254): spurious correlation (the attribute
correlates with the label), attribute imbalance, class imbalance, and attribute generalisation (an attribute that
training lacks).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import BadDefinition, UnknownName
from ..assignment import Assignment

if TYPE_CHECKING:
    import pyarrow as pa


def cells(
    table: pa.Table,
    *,
    label: str,
    attribute: str,
    train: dict[str, int],
    ood_test: dict[str, int],
    seed: str,
    distinct: list[str] | None = None,
) -> Assignment:
    """Draw given numbers of rows of each cell, named `label/attribute`, for training and test, by `seed`, first for the
    test. All other rows are dropped, as are rows that equal an earlier row (by row id) in the fields `distinct`, so
    that no test row occurs in training. The cell is the group.

    Parameters:
        attribute: the attribute field.
        train: the number of training rows of each cell, `label/attribute`.
        ood_test: the number of test rows of each cell.
        distinct: the fields in which no two remaining rows may be equal.
    """
    for field in (label, attribute, *(distinct or [])):
        if field not in table.column_names:
            raise UnknownName("field", field, table.column_names)
    pairs = zip(table[label].to_pylist(), table[attribute].to_pylist(), strict=True)
    group = np.array([f"{first}/{second}" for first, second in pairs])
    known = sorted(set(group.tolist()))
    usable = np.ones(table.num_rows, bool) if distinct is None else _find_first_rows(table, distinct)
    ids = table["row_id"].to_numpy()
    part = np.full(table.num_rows, "", dtype="U8")
    for cell in sorted({*train, *ood_test}):
        if cell not in known:
            raise UnknownName("cell", cell, known)
        places = np.flatnonzero((group == cell) & usable)
        test, total = ood_test.get(cell, 0), ood_test.get(cell, 0) + train.get(cell, 0)
        if total > len(places):
            raise BadDefinition(f"{total} rows of the cell {cell} are needed, but there are {len(places)}")
        order = places[draw_permutation(f"{seed}/{cell}", ids[places])]
        part[order[:test]] = "ood_test"
        part[order[test:total]] = "train"
    return Assignment(part=part, group=group)


def _find_first_rows(table: pa.Table, fields: list[str]) -> NDArray[np.bool_]:
    """Return whether each row is the first with its values of `fields`, by ascending row id. Shape (rows,)."""
    import pyarrow as pa

    numbered = table.select(fields).append_column("place", pa.array(np.arange(table.num_rows)))
    first = numbered.group_by(fields).aggregate([("place", "min")])["place_min"].to_numpy()
    is_first = np.zeros(table.num_rows, bool)
    is_first[first] = True
    return is_first
