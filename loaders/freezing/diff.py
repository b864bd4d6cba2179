"""Compare two manifests: which rows were moved, added, removed or changed, and which fields of the definitions
differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...splits.manifest import Manifest
from ..acquire.source import find_source

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 5


def diff_manifests(old: Manifest, new: Manifest, own_folders: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return counts with the first row ids: `moved` between parts, `added`, `removed`, `changed` (other content with
    equal inputs), and changed `weight`, `group`, `severity`, `label`; and `said`: the fields of the definitions that
    differ (rule, parameters, source, notes)."""
    left, right = (_load_rows(manifest, own_folders) for manifest in (old, new))
    named = {"old": old.full_name, "new": new.full_name, "same_identity": old.identity == new.identity}
    return named | diff_rows(left, right) | {"said": diff_definitions(old, new)}


def diff_rows(left: pa.Table, right: pa.Table) -> dict[str, Any]:
    """Compare the rows of two manifests (`row_id`, `check`, `part` and optional columns) as in `diff_manifests`."""
    left, right = left.sort_by("row_id"), right.sort_by("row_id")
    before, after = left["row_id"].to_numpy(), right["row_id"].to_numpy()
    common, i, j = np.intersect1d(before, after, return_indices=True)
    parts = _read_texts(left, "part")[i], _read_texts(right, "part")[j]
    changes: dict[str, Any] = {
        "moved": {},
        "added": _summarise_ids(np.setdiff1d(after, before)),
        "removed": _summarise_ids(np.setdiff1d(before, after)),
        "changed": _summarise_ids(common[left["check"].to_numpy()[i] != right["check"].to_numpy()[j]]),
    }
    moved = parts[0] != parts[1]
    for pair in sorted({(a, b) for a, b in zip(parts[0][moved], parts[1][moved], strict=True)}):
        changes["moved"][f"{pair[0]} -> {pair[1]}"] = _summarise_ids(
            common[(parts[0] == pair[0]) & (parts[1] == pair[1])]
        )
    for name in ("weight", "group", "severity", "label"):
        changes[name] = _summarise_ids(common[_read_texts(left, name)[i] != _read_texts(right, name)[j]])
    return changes


def diff_definitions(old: Manifest, new: Manifest) -> dict[str, list[Any]]:
    """Return the fields of two definitions that differ, before and after."""
    a, b = (manifest.definition.model_dump() for manifest in (old, new))
    skipped = ("parts", "identity", "version")
    return {key: [a[key], b[key]] for key in a if key not in skipped and a[key] != b[key]}


def _load_rows(manifest: Manifest, own_folders: tuple[Path, ...]) -> pa.Table:
    source = find_source(manifest.definition.source.name)
    return manifest.rows(source.table(own_folders), source.schema)


def _read_texts(table: pa.Table, name: str) -> np.ndarray[Any, Any]:
    """A column as comparable text; empty for a null or if the column is absent."""
    if name not in table.column_names:
        return np.full(table.num_rows, "", dtype=object)
    return np.array(["" if value is None else str(value) for value in table[name].to_pylist()], dtype=object)


def _summarise_ids(ids: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {"rows": len(ids), "first": [f"{value:016x}" for value in ids[:_SHOWN]]}
