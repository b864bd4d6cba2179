"""Read class names from `ClassLabel` features of Hugging Face Hub data sets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData, BadDefinition
from ..readers.parquet import open_parquet

if TYPE_CHECKING:
    import pyarrow as pa


def read_class_labels(files: Mapping[str, Path], columns: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the names of classes 0, 1 .. of each field (given by its column) from the `huggingface` metadata of
    Parquet files. Raises `BadDefinition` if two files disagree."""
    class_names: dict[str, list[str]] = {}
    for name, path in sorted(files.items()):
        if not name.endswith(".parquet"):
            continue
        with open_parquet(path, name) as file:
            features = _read_features(file.schema_arrow)
        for field, column in columns.items():
            feature = _find_feature(features, column)
            names = feature.get("names") if feature.get("_type") == "ClassLabel" else None
            if not isinstance(names, list) or not all(isinstance(label, str) and label for label in names):
                continue
            if class_names.setdefault(field, names) != names:
                raise BadDefinition(
                    f"[data] {name} and {min(files)} have different names for the classes of {column!r}: a class "
                    "number would have two meanings"
                )
    return {field: names for field, names in class_names.items() if len(set(names)) == len(names)}


def check_class_labels(rows: pa.Table, names: Mapping[str, Iterable[str]]) -> None:
    """Raise `BadData` if a class has no name. Hub data sets have -1 for an unknown label."""
    import pyarrow.compute as pc

    for field, class_names in names.items():
        ends, last = pc.min_max(rows[field]).as_py(), len(list(class_names)) - 1
        for value in ends.values():
            if value is not None and not 0 <= value <= last:
                raise BadData(
                    f"[data] {field} has the class {value}, but its ClassLabel names only 0 to {last}: exclude "
                    f"these rows by options = {{ without = {{ COLUMN = {value} }} }}"
                )


def _read_features(schema: pa.Schema) -> dict[str, Any]:
    try:
        features = json.loads((schema.metadata or {}).get(b"huggingface", b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    return features if isinstance(features, dict) else {}


def _find_feature(features: dict[str, Any], column: str) -> dict[str, Any]:
    """The feature of a column, or of a structure's field ("answer.kind")."""
    feature: Any = features
    for step in [column] if column in features else column.split("."):
        feature = feature.get(step) if isinstance(feature, dict) else None
    return feature if isinstance(feature, dict) else {}
