"""Write a part as one Parquet file."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from ...core.canonical import to_canonical_json
from ...core.errors import FarshiftError
from ...core.files import get_lock_path, hold_lock, translate_os_errors
from ...core.progress import report_progress
from ..part import Part
from .content import describe_export, iterate_blocks

FORMAT = "farshift-parquet-1"


def write(part: Part, out: Path | str) -> Path:
    """Write the part to the file `out`, zstd-compressed and atomically.

    Columns: `Part.columns`, with their types; a tensor is a fixed-size list of its elements in C order. The schema's
    metadata has, under `farshift`, canonical JSON: format, split, identity, part, rows, label, fields, and the `shapes`
    of the tensors. Returns the path. Replaces an earlier export. Raises `FarshiftError` if
    `out` is a folder or another file.
    """
    target = Path(out)
    with (
        hold_lock(get_lock_path(target), str(target)),
        translate_os_errors(target, "choose another file", is_saved=False),
    ):
        _refuse_others(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.tmp")
        try:
            with temporary.open("wb") as sink:
                _write_table(part, sink, f"writing {target.name}")
                sink.flush()
                os.fsync(sink.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    return target


def _write_table(part: Part, sink: BinaryIO, label: str) -> None:
    import pyarrow.parquet as pq

    shapes: dict[str, Any] = {field.name: list(field.shape) for field in part.schema.fields if field.shape}
    metadata = {b"farshift": to_canonical_json({"format": FORMAT, "shapes": shapes, **describe_export(part)})}
    blocks = iterate_blocks(part)
    first = next(blocks)
    schema, done = first.schema.with_metadata(metadata), 0
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for block in chain([first], blocks):
            writer.write_table(block.cast(schema), row_group_size=max(1, block.num_rows))
            done += block.num_rows
            report_progress(label, done, len(part))


def _refuse_others(target: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not target.exists():
        return
    try:
        ours = target.is_file() and b"farshift" in (pq.read_schema(target).metadata or {})
    except pa.ArrowInvalid:
        ours = False
    if not ours:
        what = "a folder" if target.is_dir() else "not an export of a part"
        raise FarshiftError(f"{target} is {what}: choose another file")
