"""RxRx1 as published by WILDS: images by experiment, plate, well and site, and `metadata.csv`.

The second site of the training experiments is the in-distribution test.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._layout import attach_files, get_archive, parse_integers, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa


def pieces(files: dict[str, Any]) -> Iterator[pa.Table]:
    """Fields: `image`, `treatment`, `published` (train, id_test, val or test), `batch` (the experiment), `cell_type`,
    `plate`, `well` and `site`."""
    archive = get_archive(files)
    column_names = ("dataset", "experiment", "plate", "well", "site", "cell_type", "sirna_id")
    table = read_member_columns(archive, "metadata.csv", column_names)
    sites = zip(table["dataset"], table["site"], strict=True)
    places = zip(*(table[name] for name in ("experiment", "plate", "well", "site")), strict=True)
    yield from attach_files(
        archive,
        [f"images/{experiment}/Plate{plate}/{well}_s{site}.png" for experiment, plate, well, site in places],
        {
            "treatment": parse_integers(table["sirna_id"], f"{archive.where}: metadata.csv: sirna_id"),
            "published": ["id_test" if (part, site) == ("train", "2") else part for part, site in sites],
            "batch": table["experiment"],
            **{name: table[name] for name in ("cell_type", "plate", "well", "site")},
        },
    )
