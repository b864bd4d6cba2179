"""The audit: measurements of the shift in a split.

A split without the shift that it names fails its audit (`holds` is false, and `why` gives the reason). Each measure is
one file; it takes the split's rows (`parted.PartedRows`) and returns its entry of `audit.json`. Measures depend on the
rows alone: samples are drawn by row id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..manifest import SplitDefinition
from ..schema import Schema
from .duplicates import count_duplicate_inputs, count_shared_examples, measure_near_duplicates
from .factors import measure_factors
from .groups import measure_groups
from .labels import measure_labels
from .noise import compute_transition_matrix, measure_noise
from .parted import join_parts
from .power import minimum_detectable_difference
from .probe import fit_probes
from .severity import compute_severity_histogram, measure_severity
from .shift import measure_domain_shift
from .texts import measure_texts
from .verdict import judge_split

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["audit_split", "is_same_audit", "minimum_detectable_difference"]

_MEASURES = {
    "near_duplicates": measure_near_duplicates,
    "shared_examples": count_shared_examples,
    "texts": measure_texts,
    "factors": measure_factors,
    "severity": measure_severity,
    "severity_histogram": compute_severity_histogram,
    "groups": measure_groups,
    "noise": measure_noise,
    "transition": compute_transition_matrix,
    "probe": fit_probes,
    "diversity_and_correlation": measure_domain_shift,
}
"""Measures that do not apply to every split; they are left out where they do not."""


def audit_split(definition: SplitDefinition, source: pa.Table, assigned: pa.Table, schema: Schema) -> dict[str, Any]:
    """Measure a split and return the content of `audit.json`; docs/audit.md explains each measure. `source` has the
    fields, `row_id` and `check`, in ascending row id; `assigned` has the manifest's rows."""
    rows = join_parts(definition, source, assigned, schema)
    measures: dict[str, Any] = {
        "rows": {name: int(rows.masks[name].sum()) for name in rows.names},
        "dropped": source.num_rows - assigned.num_rows,
        "duplicate_inputs": count_duplicate_inputs(rows),
        "labels": measure_labels(rows),
        "minimum_detectable_difference": {
            name: round(minimum_detectable_difference(int(rows.masks[name].sum())), 4)
            for name in rows.names
            if name.endswith("test")
        },
    }
    measures |= {name: value for name, measure in _MEASURES.items() if (value := measure(rows))}
    holds, why = judge_split(definition, measures)
    return {
        "split": f"{definition.name}@{definition.version}",
        "kind": definition.kind,
        "holds": holds,
        "why": why,
        **measures,
    }


def is_same_audit(left: Any, right: Any) -> bool:
    """Return whether two audits agree: floating-point numbers to within 0.002 or one millionth of their value (linear
    algebra differs in the last digits between processors), everything else exactly."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same_audit(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same_audit, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return abs(left - right) <= max(0.002, 1e-6 * abs(left))
    return bool(left == right)
