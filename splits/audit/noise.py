"""Corrupted labels: how many were replaced, and how many of those are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .parted import PartedRows, encode_values

if TYPE_CHECKING:
    import pyarrow as pa

_CLASSES = 20


def measure_noise(rows: PartedRows) -> dict[str, Any]:
    """Return for each part how many labels are `overridden` and how many are `wrong`, and both as shares of its rows
    (`overridden_rate`, `true_rate`): a label redrawn among all classes may be correct again. Empty if the split
    overrides no label."""
    if "its label" not in rows.table.column_names:
        return {}
    import pyarrow.compute as pc

    truth, override = _read_labels(rows)
    overridden = override.is_valid().to_numpy()
    wrong = pc.fill_null(pc.not_equal(override, truth), False).to_numpy()
    return {
        name: {
            "overridden": int(overridden[here].sum()),
            "wrong": int(wrong[here].sum()),
            "overridden_rate": round(float(overridden[here].mean()), 4),
            "true_rate": round(float(wrong[here].mean()), 4),
        }
        for name in rows.names
        for here in [rows.masks[name]]
    }


def compute_transition_matrix(rows: PartedRows) -> dict[str, Any]:
    """Return the transition matrix of the training labels: a row for each true class, with the shares of the observed
    classes. Empty if the split overrides no label, and for more than 20 classes."""
    if "its label" not in rows.table.column_names or "train" not in rows.names:
        return {}
    import pyarrow as pa
    import pyarrow.compute as pc

    truth, override = _read_labels(rows)
    codes, classes = encode_values(pa.chunked_array([*truth.chunks, *pc.coalesce(override, truth).chunks]))
    if len(classes) > _CLASSES:
        return {}
    train, size = rows.masks["train"], len(classes)
    true, given = codes[: len(truth)][train], codes[len(truth) :][train]
    counts = np.bincount(true * size + given, minlength=size * size).reshape(size, size)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    return {"classes": classes, "shares": np.round(shares, 4).tolist()}


def _read_labels(rows: PartedRows) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    truth = rows.table[rows.definition.label]
    return truth, rows.table["its label"].cast(truth.type)
