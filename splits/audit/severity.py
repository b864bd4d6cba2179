"""Severity: the distance of rows from training, by the split's own measure."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .parted import PartedRows

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BINS = 24


def measure_severity(rows: PartedRows) -> dict[str, Any]:
    """Return `min`, `max`, `mean` and `quantiles` of each part's severity. Empty if rows have none."""
    values = _collect_severities(rows)
    return {
        name: {
            "min": part.min().item(),
            "max": part.max().item(),
            "mean": round(float(part.mean()), 3),
            "quantiles": {str(q): round(float(np.quantile(part, q)), 3) for q in _QUANTILES},
        }
        for name, part in values.items()
    }


def compute_severity_histogram(rows: PartedRows) -> dict[str, Any]:
    """Count the rows of each part by severity: by `values` if there are at most 24, else between `edges` (24 bins of
    equal width; a bin includes its lower edge, the last bin both)."""
    values = _collect_severities(rows)
    if not values:
        return {}
    every = np.unique(np.concatenate(list(values.values())))
    if len(every) <= _BINS:
        counts = {name: [int((part == value).sum()) for value in every] for name, part in values.items()}
        return {"values": every.tolist(), "counts": counts}
    edges = np.linspace(every[0], every[-1], _BINS + 1)
    counts = {name: np.histogram(part, edges)[0].tolist() for name, part in values.items()}
    return {"edges": [round(edge, 4) for edge in edges.tolist()], "counts": counts}


def _collect_severities(rows: PartedRows) -> dict[str, NDArray[Any]]:
    if "its severity" not in rows.table.column_names:
        return {}
    values = rows.table["its severity"].to_numpy()
    return {name: values[rows.masks[name]] for name in rows.names}
