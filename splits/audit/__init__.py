"""The audit: measurements of the shift in a split.

A split without the shift that it names fails its audit (`holds` is false, and `why` gives the reason). Each measure
takes the split's rows (`parted.PartedRows`) and returns its entry of `audit.json`. Measures depend on the rows alone:
samples are drawn by row id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..manifest import SplitDefinition
from ..schema import Schema
from .measures import (
    compute_severity_histogram,
    compute_transition_matrix,
    measure_factors,
    measure_groups,
    measure_labels,
    measure_noise,
    measure_severity,
)
from .parted import join_parts
from .probe import fit_probes, measure_domain_shift
from .texts import count_duplicate_inputs, count_shared_examples, measure_near_duplicates, measure_texts
from .verdict import judge_split

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["audit_split", "is_same_audit", "minimum_detectable_difference"]

# (z of 0.975) + (z of 0.8): a two-sided 5 % test finds the difference in 80 % of samples.
_POWER = 1.959964 + 0.841621
_DISCORDANT = 0.1

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


def minimum_detectable_difference(rows: int) -> float:
    """Return the smallest paired difference in accuracy that a two-sided 5 % test detects with 80 % power, if two
    models disagree in correctness on 10 % of the rows: 2.80 * sqrt(0.1 / rows)."""
    return float(_POWER * np.sqrt(_DISCORDANT / rows))
