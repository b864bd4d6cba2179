"""The audit: measured proof of what shift a split holds.

A split that does not hold the shift it names fails its audit (`holds` is false, `why` says so). One measure is one
file; each sees the split's rows (`parted.PartedRows`) and gives what `audit.json` says of them. Measures are functions
of the rows alone: what is drawn is drawn by row id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..manifest import SplitDefinition
from ..schema import Schema
from .duplicates import duplicate_inputs, near_duplicates, shared_examples
from .factors import factors
from .groups import groups
from .labels import labels
from .noise import noise, transition
from .parted import parted
from .power import minimum_detectable_difference
from .probe import probe
from .severity import severity, severity_histogram
from .shift import diversity_and_correlation
from .texts import texts
from .verdict import verdict

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["audit", "minimum_detectable_difference", "same"]

_MEASURES = {
    "near_duplicates": near_duplicates,
    "shared_examples": shared_examples,
    "texts": texts,
    "factors": factors,
    "severity": severity,
    "severity_histogram": severity_histogram,
    "groups": groups,
    "noise": noise,
    "transition": transition,
    "probe": probe,
    "diversity_and_correlation": diversity_and_correlation,
}
"""Measures that say nothing of some splits, and are left out there."""


def audit(definition: SplitDefinition, source: pa.Table, assigned: pa.Table, schema: Schema) -> dict[str, Any]:
    """Measure a split. `source` has the fields, `row_id` and `check`, in ascending row id; `assigned` is the manifest's
    rows. The answer is what `audit.json` holds; docs/audit.md explains each measure."""
    rows = parted(definition, source, assigned, schema)
    found: dict[str, Any] = {
        "rows": {name: int(rows.masks[name].sum()) for name in rows.names},
        "dropped": source.num_rows - assigned.num_rows,
        "duplicate_inputs": duplicate_inputs(rows),
        "labels": labels(rows),
        "minimum_detectable_difference": {
            name: round(minimum_detectable_difference(int(rows.masks[name].sum())), 4)
            for name in rows.names
            if name.endswith("test")
        },
    }
    found |= {name: value for name, measure in _MEASURES.items() if (value := measure(rows))}
    holds, why = verdict(definition, found)
    return {
        "split": f"{definition.name}@{definition.version}",
        "kind": definition.kind,
        "holds": holds,
        "why": why,
        **found,
    }


def same(left: Any, right: Any) -> bool:
    """Whether two audits agree: numbers that are not whole within 0.002, or a millionth of themselves (linear algebra
    differs in last digits between processors); all else exactly."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return abs(left - right) <= max(0.002, 1e-6 * abs(left))
    return bool(left == right)
