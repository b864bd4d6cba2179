"""Groups: the units of clustering, such as domains, or templates in a compositional split."""

from __future__ import annotations

from typing import Any

import numpy as np

from .labels import encode_classes
from .parted import PartedRows, encode_values

_SHOWN = 20


def measure_groups(rows: PartedRows) -> dict[str, Any]:
    """Return each part's number of groups (`count`), the number it shares with training, the `rows` of the 20 largest,
    and the total variation of the group proportions from training's; with classes also that of (group, label) pairs.
    Empty if rows have no group."""
    if "its group" not in rows.table.column_names:
        return {}
    codes, names = encode_values(rows.table["its group"])
    counts = {part: np.bincount(codes[rows.masks[part]], minlength=len(names)) for part in rows.names}
    largest = np.sort(np.argsort(-np.bincount(codes), kind="stable")[:_SHOWN]).tolist()
    measures: dict[str, Any] = {
        "count": {part: int((count > 0).sum()) for part, count in counts.items()},
        "shared_with_train": {part: int(((counts["train"] > 0) & (counts[part] > 0)).sum()) for part in rows.evaluated},
        "rows": {part: {str(names[k]): int(count[k]) for k in largest if count[k]} for part, count in counts.items()},
        "total_variation_from_train": rows.total_variations(codes),
    }
    if labelled := encode_classes(rows):
        cells = np.unique(codes * len(labelled[1]) + labelled[0], return_inverse=True)[1]
        measures["with_label_total_variation_from_train"] = rows.total_variations(cells)
    return measures
