"""iWildCam as published by WILDS: images of all parts under `train/`, and `metadata.csv`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._layout import attach_files, get_archive, parse_integers, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa


def pieces(files: dict[str, Any]) -> Iterator[pa.Table]:
    """Fields: `image`, `species`, `published` (train, val, test, id_val or id_test), `location`, `sequence`, `time`."""
    archive = get_archive(files)
    column_names = ("filename", "y", "split", "location_remapped", "sequence_remapped", "datetime")
    table = read_member_columns(archive, "metadata.csv", column_names)
    yield from attach_files(
        archive,
        [f"train/{name}" for name in table["filename"]],
        {
            "species": parse_integers(table["y"], f"{archive.where}: metadata.csv: y"),
            "published": table["split"],
            "location": table["location_remapped"],
            "sequence": table["sequence_remapped"],
            "time": table["datetime"],
        },
    )
