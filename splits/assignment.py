"""The result of a rule: the part of each row, and its weight, group, severity and label override."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BadDefinition, get_first_line
from .rows import compute_row_digests, compute_set_digest, digest_repeated_inputs
from .schema import Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = ("train", "id_val", "id_test", "ood_val", "ood_test")

_TYPES = {
    "part": ("string",),
    "weight": ("int64",),
    "group": ("string", "int64"),
    "severity": ("int64", "double"),
}
"""The Arrow types that a rule's arrays may have. A label override has the type of the label."""


@dataclass
class Assignment:
    """One entry per row of a source, in the source's order (ascending row id); all arrays have shape (rows,).

    `part` names the part; it is empty where the row is dropped. `weight` counts the published repetitions of a row
    (rows are never copied). `group` is the unit of clustering; `severity` is the distance of the row from training;
    `label` overrides the label field (a corrupted label), and is masked where the label is unchanged.
    """

    part: NDArray[np.str_]
    weight: NDArray[np.int64] | None = None
    group: NDArray[np.str_] | None = None
    severity: NDArray[np.int64] | NDArray[np.float64] | None = None
    label: np.ma.MaskedArray[Any, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    def table(self, source: pa.Table) -> pa.Table:
        """Return the manifest's rows: row_id, check, part and the other columns, without the dropped rows."""
        import pyarrow as pa
        import pyarrow.compute as pc

        columns: dict[str, Any] = {"row_id": source["row_id"], "check": source["check"]}
        for name in _TYPES:
            values = getattr(self, name)
            if values is not None or name == "part":
                columns[name] = _make_column(name, values, source.num_rows)
        if self.label is not None:
            columns["label"] = _make_column("label", self.label, source.num_rows)
        unknown = sorted(set(pc.unique(columns["part"]).to_pylist()) - {*PARTS, ""})
        if unknown:
            raise BadDefinition(f"the rule names parts {', '.join(unknown)}: use {', '.join(PARTS)}")
        assigned = pa.table(columns).filter(pc.not_equal(columns["part"], ""))
        if "severity" in columns and not np.isfinite(assigned["severity"].to_numpy()).all():
            raise BadDefinition("the rule gives a severity that is NaN or infinite: drop these rows or give a number")
        if "weight" in columns and assigned.num_rows and pc.min(assigned["weight"]).as_py() < 1:
            raise BadDefinition("the rule gives a weight below 1: to drop a row, give it the part ''")
        return assigned


def drop_shared_inputs(assigned: pa.Table, source: pa.Table, schema: Schema) -> pa.Table:
    """Return an assignment without the training rows whose inputs stand in another part too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    positions, digests = digest_repeated_inputs(source, schema)
    repeated, assigned_ids = source["row_id"].to_numpy()[positions], assigned["row_id"].to_numpy()
    is_trained = pc.equal(assigned["part"], "train").to_numpy()
    elsewhere = digests[np.isin(repeated, assigned_ids[~is_trained])]
    shared = is_trained & np.isin(assigned_ids, repeated[np.isin(digests, elsewhere)])
    return assigned.filter(pa.array(~shared))


def _make_column(name: str, values: Any, rows: int) -> pa.Array:
    """Return a rule's output `name` as a column; `BadDefinition` unless it has one value of its type for each row."""
    import pyarrow as pa

    mask = np.ma.getmaskarray(values) if name == "label" else None
    try:
        column = pa.array(np.ma.getdata(values) if name == "label" else values, mask=mask)
    except (TypeError, ValueError, pa.ArrowNotImplementedError) as error:
        raise BadDefinition(f"the rule gives no column of values as {name!r}: {get_first_line(error)}") from error
    if len(column) != rows:
        raise BadDefinition(f"the rule gives {len(column)} values of {name!r} for {rows} rows")
    if name in _TYPES:
        if str(column.type) not in _TYPES[name]:
            raise BadDefinition(f"the rule gives {name!r} as {column.type}: use {' or '.join(_TYPES[name])}")
        if column.null_count:
            raise BadDefinition(f"the rule gives {column.null_count} of {rows} rows no {name!r}")
    return column


def compute_part_digests(assigned: pa.Table) -> dict[str, dict[str, Any]]:
    """Return `rows`, `weighted_rows` and `digest` of each part; the digest covers everything that decides a score.

    The digest covers (row_id, check, weight, group, severity, label override) as canonical rows, so it does not
    depend on order.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    digests: dict[str, dict[str, Any]] = {}
    for part in PARTS:
        rows = assigned.filter(pc.equal(assigned["part"], part)).combine_chunks()
        if not rows.num_rows:
            continue
        fields = [Field("id", "uint64", "input"), Field("digest", "uint64", "meta")]
        columns: dict[str, Any] = {"id": rows["row_id"], "digest": rows["check"]}
        for name in ("weight", "group", "severity", "label"):
            if name not in rows.column_names or rows[name].null_count == rows.num_rows:
                continue
            kind = {"double": "float64", "large_string": "string"}.get(str(rows[name].type), str(rows[name].type))
            present = pc.is_valid(rows[name])
            columns[f"has_{name}"] = present
            columns[f"its_{name}"] = pc.fill_null(rows[name], "" if kind == "string" else 0)
            fields += [Field(f"has_{name}", "bool", "meta"), Field(f"its_{name}", kind, "meta")]
        digest = compute_set_digest(compute_row_digests(pa.table(columns), Schema(tuple(fields))))
        weighted = int(pc.sum(rows["weight"]).as_py()) if "weight" in rows.column_names else rows.num_rows
        digests[part] = {"rows": rows.num_rows, "weighted_rows": weighted, "digest": digest}
    return digests
