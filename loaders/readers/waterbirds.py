"""Waterbirds: images of birds on backgrounds, and `metadata.csv` (Sagawa et al. 2020, arXiv 1911.08731)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import attach_files, get_archive, parse_integers, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa

_PARTS = ("train", "val", "test")
_NAMES = ("land", "water")


def pieces(files: dict[str, Any]) -> Iterator[pa.Table]:
    """Fields: `image`, `waterbird` (0 or 1), `published` (train, val or test), `background` (land or water), `cell`
    (the bird and its background, such as "water/land") and `species` (the folder of CUB)."""
    archive = get_archive(files)
    table = read_member_columns(archive, "metadata.csv", ("img_filename", "y", "split", "place"))
    bird, part, background = (
        parse_integers(table[name], f"{archive.where}: metadata.csv: {name}") for name in ("y", "split", "place")
    )
    if len(bird) and not (set(bird) | set(background) <= {0, 1} and set(part) <= {0, 1, 2}):
        raise BadData(f"{archive.where}: metadata.csv: y and place must be 0 or 1, and split must be 0, 1 or 2")
    yield from attach_files(
        archive,
        table["img_filename"].tolist(),
        {
            "waterbird": bird,
            "published": [_PARTS[code] for code in part],
            "background": [_NAMES[code] for code in background],
            "cell": [
                f"{_NAMES[code]}/{_NAMES[background_code]}"
                for code, background_code in zip(bird, background, strict=True)
            ],
            "species": [name.partition("/")[0] for name in table["img_filename"]],
        },
    )
