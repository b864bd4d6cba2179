"""Waterbirds: pictures of birds on backgrounds, and `metadata.csv` (Sagawa et al. 2020, arXiv 1911.08731)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import columns_of, whole, whole_numbers, with_files

if TYPE_CHECKING:
    import pyarrow as pa

_PARTS = ("train", "val", "test")
_NAMES = ("land", "water")


def pieces(files: dict[str, Any]) -> Iterator[pa.Table]:
    """`image`, `waterbird` (0 or 1), `published` (train, val or test), `background` (land or water), `cell` (the bird
    and its background, such as "water/land") and `species` (the folder of CUB)."""
    held = whole(files)
    table = columns_of(held, "metadata.csv", ("img_filename", "y", "split", "place"))
    bird, part, place = (
        whole_numbers(table[name], f"{held.where}: metadata.csv: {name}") for name in ("y", "split", "place")
    )
    if len(bird) and not (set(bird) | set(place) <= {0, 1} and set(part) <= {0, 1, 2}):
        raise BadData(f"{held.where}: metadata.csv: y and place are 0 or 1, split is 0, 1 or 2")
    yield from with_files(
        held,
        table["img_filename"].tolist(),
        {
            "waterbird": bird,
            "published": [_PARTS[one] for one in part],
            "background": [_NAMES[one] for one in place],
            "cell": [f"{_NAMES[one]}/{_NAMES[on]}" for one, on in zip(bird, place, strict=True)],
            "species": [name.partition("/")[0] for name in table["img_filename"]],
        },
    )
