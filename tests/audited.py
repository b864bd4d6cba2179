"""Small splits made of lists, to audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from farshift.splits.assignment import Assignment
from farshift.splits.audit import audit_split
from farshift.splits.audit.parted import PartedRows, join_parts
from farshift.splits.manifest import SplitDefinition
from farshift.splits.rows import compute_row_digests, compute_row_ids, get_digest_prefixes
from farshift.splits.schema import Field, Schema

TYPES = {"string": "string", "int64": "int64", "double": "float64", "bool": "bool", "binary": "bytes"}


def rows_of(kind: str, columns: dict[str, Any], part: list[str], inputs: list[str], **said: Any) -> PartedRows:
    """The rows of a split as its audit sees them; see `audited`."""
    return join_parts(*_made(kind, columns, part, inputs, **said))


def audited(kind: str, columns: dict[str, Any], part: list[str], inputs: list[str], **said: Any) -> dict[str, Any]:
    """The audit of a split of rows with these columns (`y` is the label) and parts. `inputs` names the input columns;
    `said`: `group`, `severity` and `override` (a corrupted label, None where it stays) of each row, `declared` and
    `factors` of the definition."""
    return audit_split(*_made(kind, columns, part, inputs, **said))


def _made(
    kind: str,
    columns: dict[str, Any],
    part: list[str],
    inputs: list[str],
    *,
    group: list[str] | None = None,
    severity: list[float] | None = None,
    override: list[Any] | None = None,
    **said: Any,
) -> tuple[SplitDefinition, pa.Table, pa.Table, Schema]:
    table = pa.table({name: _column(values) for name, values in columns.items()})
    fields = [
        Field(name, _type(table[name].type), "input" if name in inputs else "label" if name == "y" else "meta")
        for name in columns
    ]
    schema = Schema(tuple(fields))
    table = table.cast(schema.arrow())
    ids, checks = compute_row_ids(table, schema), get_digest_prefixes(compute_row_digests(table, schema))
    order = np.argsort(ids)
    source = table.append_column("row_id", pa.array(ids)).append_column("check", pa.array(checks)).take(order)
    position = order.tolist()
    assignment = Assignment(
        part=np.array(part)[order],
        group=None if group is None else np.array(group)[order],
        severity=None if severity is None else np.array(severity)[order],
        label=None if override is None else _masked([override[k] for k in position]),
    )
    definition = SplitDefinition(
        name="mine/split", version=1, kind=kind, title="mine", label="y", rule="a/b", source={"name": "mine"}, **said
    )
    return definition, source, assignment.table(source), schema


def _column(values: Any) -> pa.Array:
    if isinstance(values, np.ndarray) and values.ndim > 1:
        return pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values[0].size)
    return pa.array(values)


def _type(arrow: pa.DataType) -> str:
    if pa.types.is_fixed_size_list(arrow):
        item = {"double": "float32", "float": "float32", "uint8": "uint8", "int64": "int64"}[str(arrow.value_type)]
        return f"{item}[{arrow.list_size}]"
    return TYPES[str(arrow)]


def _masked(values: list[Any]) -> np.ma.MaskedArray:
    fill = next(value for value in values if value is not None)
    return np.ma.MaskedArray([fill if value is None else value for value in values], [v is None for v in values])
