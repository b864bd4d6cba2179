"""iWildCam as WILDS publishes it: all pictures under `train/`, whatever their part, and `metadata.csv`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._layout import columns_of, whole, whole_numbers, with_files

if TYPE_CHECKING:
    import pyarrow as pa


def pieces(files: dict[str, Any]) -> Iterator[pa.Table]:
    """`image`, `species`, `published` (train, val, test, id_val or id_test), `location`, `sequence` and `time`."""
    held = whole(files)
    wanted = ("filename", "y", "split", "location_remapped", "sequence_remapped", "datetime")
    table = columns_of(held, "metadata.csv", wanted)
    yield from with_files(
        held,
        [f"train/{name}" for name in table["filename"]],
        {
            "species": whole_numbers(table["y"], f"{held.where}: metadata.csv: y"),
            "published": table["split"],
            "location": table["location_remapped"],
            "sequence": table["sequence_remapped"],
            "time": table["datetime"],
        },
    )
