"""Checksums that prove exported rows without their source: the columns that a part's pinned digest is taken of.

`row_id`, `check` (of the row as written), `occurrence` (which of the source's rows of equal inputs it is), and what the
part has of `weight`, `group` and `severity`. Where the split replaces labels: `label` (the replacement), `true_label`
and `source_check` (of the row with its true label), all null where the label was left as it is.

A Parquet file of a part needs less: its rows carry all that but the true labels of replaced ones, which lie in its
metadata (`encode_true_labels`).
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from ...splits.rows import compute_row_digests, find_occurrence_numbers, get_digest_prefixes
from ...splits.schema import Field

if TYPE_CHECKING:
    import pyarrow as pa

    from ..part import Part

TYPES = {
    "row_id": ("uint64",),
    "check": ("uint64",),
    "occurrence": ("int32",),
    "weight": ("int64",),
    "group": ("string", "int64"),
    "severity": ("int64", "double"),
    "source_check": ("uint64",),
}
"""The Arrow types of the columns, beside the labels."""

TRUE_LABELS = b"farshift.true_labels"
"""The key of the true labels in the metadata of a Parquet file's schema."""


def compute_checksums(part: Part, written: pa.Table) -> pa.Table:
    """The checksums of a part's rows; `written` is `part.arrow()`, the rows as they are exported."""
    import pyarrow as pa

    schema, most = part.schema, part.source.num_rows
    columns: dict[str, Any] = {
        "row_id": part.row_ids,
        "check": get_digest_prefixes(compute_row_digests(written, schema)),
        "occurrence": find_occurrence_numbers(written, schema, part.row_ids, most).astype(np.int32),
        **part.row_metadata,
    }
    if part.override is not None:
        is_unchanged, kind = ~part.corrupted, schema[part.label].arrow()
        truth = pa.array(part.true_labels(), kind)
        label_index = written.column_names.index(part.label)
        own = get_digest_prefixes(compute_row_digests(written.set_column(label_index, part.label, truth), schema))
        columns["label"] = pa.array(part.observed_labels(), kind, mask=is_unchanged)
        columns["true_label"] = pa.array(part.true_labels(), kind, mask=is_unchanged)
        columns["source_check"] = pa.array(own, mask=is_unchanged)
    return pa.table(columns)


def make_manifest_rows(rows: pa.Table, part: str) -> pa.Table:
    """A manifest's rows, as `splits.assignment.compute_part_digests` takes them, out of the checksums of rows of
    `part`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [name for name in ("row_id", "weight", "group", "severity", "label") if name in rows.column_names]
    check = rows["check"]
    if "source_check" in rows.column_names:
        check = pc.coalesce(rows["source_check"], check)
    table = rows.select(names).append_column("check", check)
    return table.append_column("part", pa.repeat(part, rows.num_rows))


def encode_true_labels(part: Part) -> bytes:
    """The replaced labels' numbers in the part and true values, as text: base64 of an Arrow stream with `row` (int64)
    and `label`."""
    import pyarrow as pa

    rows = np.flatnonzero(part.corrupted)
    table = pa.table({"row": rows, "label": pa.array(part.true_labels()[rows], part.schema[part.label].arrow())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return base64.b64encode(sink.getvalue())


def decode_true_labels(text: bytes, rows: int, label: Field) -> pa.Table:
    """What `encode_true_labels` wrote of a part of so many rows with this label; `ValueError` (of which
    `pa.ArrowInvalid` is one) or `OSError` for anything else."""
    import pyarrow as pa

    stream = pa.ipc.open_stream(base64.b64decode(text, validate=True))
    if not stream.schema.equals(pa.schema({"row": pa.int64(), "label": label.arrow()})):
        raise ValueError("they are not numbers of rows with a label each")
    table = stream.read_all()
    if table["row"].null_count or table["label"].null_count:
        raise ValueError("some are missing")
    numbers = table["row"].to_numpy()
    if len(numbers) and (numbers[0] < 0 or numbers[-1] >= rows or (np.diff(numbers) <= 0).any()):
        raise ValueError("they are not of rows in ascending order")
    return table
