"""What an audit measures of parts, labels, groups, severity, factors and corrupted labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.errors import BadDefinition
from ..rows import compute_value_digests, get_digest_prefixes
from ..schema import Field
from .parted import Mask, PartedRows, encode_values

if TYPE_CHECKING:
    import pyarrow as pa

_CLASSES, _SHOWN = 1000, 20
_MATRIX_CLASSES = 20


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
    from scipy.stats import ks_2samp

    parts = {name: values[mask] for name, mask in rows.masks.items()}
    return {
        "distinct": {name: len(np.unique(part)) for name, part in parts.items()},
        "mean": {name: round(float(part.mean()), 4) for name, part in parts.items()},
        "standard_deviation": {name: round(float(part.std()), 4) for name, part in parts.items()},
        "kolmogorov_smirnov_from_train": {
            name: round(float(ks_2samp(values[train], values[test], method="asymp").statistic), 4)
            for name, (train, test) in rows.pairs().items()
        },
    }


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
    if len(classes) > _MATRIX_CLASSES:
        return {}
    train, size = rows.masks["train"], len(classes)
    true, given = codes[: len(truth)][train], codes[len(truth) :][train]
    counts = np.bincount(true * size + given, minlength=size * size).reshape(size, size)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    return {"classes": classes, "shares": np.round(shares, 4).tolist()}


def _read_labels(rows: PartedRows) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    truth = rows.table[rows.definition.label]
    return truth, rows.table["its label"].cast(truth.type)
