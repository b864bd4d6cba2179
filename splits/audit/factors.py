"""Factors: fields whose values all occur in training, while the test combines them in new ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.errors import BadDefinition
from .parted import Mask, PartedRows, encode_values


def measure_factors(rows: PartedRows) -> dict[str, Any]:
    """Compare the `factors` of the definition in each part with training: `unseen_values` of each field, and the share
    of `rows_with_unseen_combination`. Empty if the definition names none."""
    names = rows.definition.factors
    for name in names:
        if rows.schema[name].shape:
            raise BadDefinition(f"{rows.definition.name}: factor {name!r} is {rows.schema[name].type}, no single value")
    if not names:
        return {}
    codes = {name: encode_values(rows.table[name])[0] for name in names}
    combined = np.unique(np.stack(list(codes.values()), axis=1), axis=0, return_inverse=True)[1].ravel()

    def unseen(values: Any, train: Mask, test: Mask) -> Any:
        return ~np.isin(values[test], values[train])

    return {
        part: {
            "unseen_values": {
                name: len(np.unique(values[test][unseen(values, train, test)])) for name, values in codes.items()
            },
            "rows_with_unseen_combination": round(float(unseen(combined, train, test).mean()), 4),
        }
        for part, (train, test) in rows.pairs().items()
    }
