"""The outcome of a rule: which row goes to which part, and what it carries there."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .errors import BadDefinition
from .rows import row_digests, set_digest
from .schema import Field, Schema

if TYPE_CHECKING:
    import pyarrow as pa

PARTS = ("train", "id_val", "id_test", "ood_val", "ood_test")


@dataclass
class Assignment:
    """One entry per row of a source, in the source's order (ascending row id); all arrays have shape (rows,).

    `part` names the part, or is empty where the row is dropped. `weight` counts a published repetition of a row
    (a weight, never a copy). `group` is the unit of clustering; `severity` how far the row lies from training;
    `label` an override of the label field (a corrupted label), masked where the label stays as it is.
    """

    part: NDArray[np.str_]
    weight: NDArray[np.int64] | None = None
    group: NDArray[np.str_] | None = None
    severity: NDArray[np.int64] | NDArray[np.float64] | None = None
    label: np.ma.MaskedArray[Any, Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    def table(self, source: pa.Table) -> pa.Table:
        """The manifest's rows: row_id, check, part and what else there is, without the dropped rows."""
        import pyarrow as pa

        rows = source.num_rows
        columns: dict[str, Any] = {"row_id": source["row_id"], "check": source["check"], "part": self.part}
        for name in ("weight", "group", "severity"):
            values = getattr(self, name)
            if values is not None:
                columns[name] = values
        if self.label is not None:
            columns["label"] = pa.array(self.label.data, mask=np.ma.getmaskarray(self.label))
        for name, values in columns.items():
            if len(values) != rows:
                raise BadDefinition(f"the rule gives {len(values)} values of {name!r} for {rows} rows")
        unknown = sorted(set(np.unique(self.part).tolist()) - {*PARTS, ""})
        if unknown:
            raise BadDefinition(f"the rule names parts {', '.join(unknown)}: use {', '.join(PARTS)}")
        severity = self.severity
        if severity is not None and not np.isfinite(np.asarray(severity, np.float64)[self.part != ""]).all():
            raise BadDefinition("the rule gives a severity that is NaN or infinite")
        return pa.table(columns).filter(pa.array(self.part != ""))


def part_digests(assigned: pa.Table) -> dict[str, dict[str, Any]]:
    """For each part of a manifest's rows: `rows`, `weighted_rows` and the `digest` over all that decides a score.

    The digest covers (row_id, check, weight, group, severity, label override) as canonical rows, so it does not
    depend on order.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found: dict[str, dict[str, Any]] = {}
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
        digest = set_digest(row_digests(pa.table(columns), Schema(tuple(fields))))
        weighted = int(pc.sum(rows["weight"]).as_py()) if "weight" in rows.column_names else rows.num_rows
        found[part] = {"rows": rows.num_rows, "weighted_rows": weighted, "digest": digest}
    return found
