"""Labels: their distribution in each part, and its distance from training's."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..rows import compute_value_digests, get_digest_prefixes
from ..schema import Field
from .parted import PartedRows, encode_values

_CLASSES, _SHOWN = 1000, 20


def measure_labels(rows: PartedRows) -> dict[str, Any]:
    """Return the number of `distinct` labels of each part. For at most 1,000 classes also `total_variation_from_train`
    and the `shares` of the 20 most frequent; for regression targets the mean, the standard deviation and the
    Kolmogorov-Smirnov statistic (`kolmogorov_smirnov_from_train`)."""
    field = rows.schema[rows.definition.label]
    if field.type == "float64":
        return _measure_numeric(rows, rows.table[field.name].to_numpy())
    codes_and_classes = encode_classes(rows)
    codes = codes_and_classes[0] if codes_and_classes else _encode_column(rows, field)
    distinct = {"distinct": {name: len(np.unique(codes[rows.masks[name]])) for name in rows.names}}
    return distinct | _measure_marginals(rows, *codes_and_classes) if codes_and_classes else distinct


def encode_classes(rows: PartedRows) -> tuple[NDArray[np.int64], list[Any]] | None:
    """Return the class index of each row, shape (rows,), and the classes; None if labels are not classes (tensors,
    regression targets, or more than 1,000 distinct values)."""
    field = rows.schema[rows.definition.label]
    if field.shape or field.type in ("float64", "bytes"):
        return None
    codes, values = encode_values(rows.table[field.name])
    return (codes, values) if len(values) <= _CLASSES else None


def _encode_column(rows: PartedRows, field: Field) -> NDArray[np.int64]:
    # A digest represents a value of any type.
    return np.unique(get_digest_prefixes(compute_value_digests(rows.table, field)), return_inverse=True)[1]


def _measure_marginals(rows: PartedRows, codes: NDArray[np.int64], values: list[Any]) -> dict[str, Any]:
    commonest = np.sort(np.argsort(-np.bincount(codes), kind="stable")[:_SHOWN]).tolist()
    counts = {name: np.bincount(codes[mask], minlength=len(values)) for name, mask in rows.masks.items()}
    return {
        "total_variation_from_train": rows.total_variations(codes),
        "shares": {
            name: {str(values[k]): round(float(count[k] / count.sum()), 4) for k in commonest}
            for name, count in counts.items()
        },
    }


def _measure_numeric(rows: PartedRows, values: NDArray[np.float64]) -> dict[str, Any]:
    parts = {name: values[mask] for name, mask in rows.masks.items()}
    return {
        "distinct": {name: len(np.unique(part)) for name, part in parts.items()},
        "mean": {name: round(float(part.mean()), 4) for name, part in parts.items()},
        "standard_deviation": {name: round(float(part.std()), 4) for name, part in parts.items()},
        "kolmogorov_smirnov_from_train": {
            name: round(_kolmogorov_smirnov(np.sort(values[train]), np.sort(values[test])), 4)
            for name, (train, test) in rows.pairs().items()
        },
    }


def _kolmogorov_smirnov(left: NDArray[np.float64], right: NDArray[np.float64]) -> float:
    """Return the largest difference of two empirical cumulative distributions; both samples are sorted."""
    both = np.concatenate([left, right])
    below = [np.searchsorted(part, both, "right") / len(part) for part in (left, right)]
    return float(np.abs(below[0] - below[1]).max())
