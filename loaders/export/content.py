"""The content of every export of a part: a description of its origin, the rows in blocks, and checksums that verify
them without their source, from which the part's digest is computed. And a part as one Parquet file.

Checksums are the columns `row_id`, `check` (of the row as written), `occurrence` (its index among the source's rows
with equal inputs), and `weight`, `group` and `severity` if the part has them. If the split replaces labels: `label`
(the replacement), `true_label` and `source_check` (of the row with its true label), all null for an unchanged label.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.canonical import to_canonical_json
from ...core.errors import FarshiftError
from ...core.files import get_lock_path, hold_lock, translate_os_errors
from ...core.progress import report_progress
from ...splits.rows import compute_row_digests, find_occurrence_numbers, get_digest_prefixes
from ..batching.batched import BatchedPart

if TYPE_CHECKING:
    import pyarrow as pa


PARQUET_FORMAT = "farshift-parquet-1"
_BLOCK_BYTES = 1 << 26
_BLOCK_ROWS = 1 << 16

TYPES = {
    "row_id": ("uint64",),
    "check": ("uint64",),
    "occurrence": ("int32",),
    "weight": ("int64",),
    "group": ("string", "int64"),
    "severity": ("int64", "double"),
    "source_check": ("uint64",),
}
"""The Arrow types of the checksums' columns other than labels."""


def describe_export(part: BatchedPart) -> dict[str, Any]:
    """Describe the origin of an export: split, manifest identity, part, rows (their number, and the sha256 of their ids
    as 64-bit little-endian numbers in order, which distinguishes a selection), and the fields of the source."""
    return {
        "split": part.split,
        "identity": part.identity,
        "part": part.exported_name,
        "rows": len(part),
        "row_ids": sha256(part.row_ids.astype("<u8").tobytes()).hexdigest(),
        "label": part.label,
        "fields": part.schema.records(),
    }


def iterate_blocks(part: BatchedPart) -> Iterator[pa.Table]:
    """Yield the part's rows in order, as tables of about 64 MB that are in memory one at a time; at least one."""
    first = part.select(np.arange(min(len(part), 1024))).arrow()
    row_bytes = max(1, first.nbytes // max(1, first.num_rows))
    rows = max(1, min(_BLOCK_ROWS, _BLOCK_BYTES // row_bytes))
    for start in range(0, max(1, len(part)), rows):
        yield part.select(np.arange(start, min(start + rows, len(part)))).arrow().combine_chunks()


def compute_checksums(part: BatchedPart, written: pa.Table) -> pa.Table:
    """Compute the checksums of a part's rows; `written` is `part.arrow()`, the rows as exported."""
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
    """Make a manifest's rows, the argument of `splits.assignment.compute_part_digests`, from the checksums of rows of
    `part`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [name for name in ("row_id", "weight", "group", "severity", "label") if name in rows.column_names]
    check = rows["check"]
    if "source_check" in rows.column_names:
        check = pc.coalesce(rows["source_check"], check)
    return rows.select(names).append_column("check", check).append_column("part", pa.repeat(part, rows.num_rows))


def write_parquet(part: BatchedPart, out: Path | str) -> Path:
    """Write the part to the file `out`, zstd-compressed and atomically.

    Columns: `Part.columns`, with their types; a tensor is a fixed-size list of its elements in C order. The schema's
    metadata has, under `farshift`, canonical JSON: format, split, identity, part, rows, label, fields, and the `shapes`
    of the tensors. Returns the path. Raises `FarshiftError` if `out` exists.
    """
    import pyarrow.parquet as pq

    target = Path(out)
    shapes: dict[str, Any] = {field.name: list(field.shape) for field in part.schema.fields if field.shape}
    metadata = {b"farshift": to_canonical_json({"format": PARQUET_FORMAT, "shapes": shapes, **describe_export(part)})}
    with stage_export(target, "file") as temporary, temporary.open("wb") as sink:
        blocks, done = iterate_blocks(part), 0
        first = next(blocks)
        schema = first.schema.with_metadata(metadata)
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            for block in chain([first], blocks):
                writer.write_table(block.cast(schema), row_group_size=max(1, block.num_rows))
                done += block.num_rows
                report_progress(f"writing {target.name}", done, len(part))
        sink.flush()
        os.fsync(sink.fileno())
    return target


@contextmanager
def stage_export(target: Path, what: str) -> Iterator[Path]:
    """Yield a temporary path beside the place of an export (`what`: file or folder), renamed to it at the end, and
    removed on an error. Raises `FarshiftError` if the place is taken."""
    advice = f"choose another {what}"
    with hold_lock(get_lock_path(target), str(target)), translate_os_errors(target, advice, is_saved=False):
        if target.exists() and not (what == "folder" and target.is_dir() and not any(target.iterdir())):
            raise FarshiftError(f"{target} exists already: {advice}, or remove it")
        final = target.resolve()
        temporary = final.with_name(f".{final.name}.tmp")
        shutil.rmtree(temporary, ignore_errors=True)  # left by a killed process
        final.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            temporary.replace(final)
        finally:
            if temporary.is_dir():
                shutil.rmtree(temporary, ignore_errors=True)
            temporary.unlink(missing_ok=True)
