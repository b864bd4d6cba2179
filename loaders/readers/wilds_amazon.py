"""Amazon reviews as published by WILDS: `reviews.csv`, and `splits/<scheme>.csv` with a part for each row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BadData
from ._layout import get_archive, parse_integers, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa

_PARTS = ("train", "val", "id_val", "test", "id_test")
_UNUSED = -1


def read(files: dict[str, Any], *, scheme: str) -> pa.Table:
    """Fields: `review`, `stars` (0 to 4), `published` (train, val, id_val, test, id_test), `reviewer`, `product`,
    `category` and `year`, for the rows that the scheme uses."""
    import pyarrow as pa

    archive = get_archive(files)
    name = f"splits/{scheme}.csv"
    codes = parse_integers(read_member_columns(archive, name, ("split",))["split"], f"{archive.where}: {name}")
    if codes.size and (codes.min() < _UNUSED or codes.max() >= len(_PARTS)):
        raise BadData(f"{archive.where}: {name} has the parts {codes.min()} to {codes.max()}, not -1 to 4")
    column_names = ("reviewText", "overall", "reviewerID", "asin", "category", "reviewYear")
    table = read_member_columns(archive, "reviews.csv", column_names)
    if len(codes) != len(table["overall"]):
        raise BadData(f"{archive.where}: {name} has {len(codes):,} rows, but reviews.csv has {len(table['overall']):,}")
    stars = parse_integers(table["overall"], f"{archive.where}: reviews.csv: overall") - 1
    used_rows = np.flatnonzero(codes != _UNUSED)
    return pa.table(
        {
            "review": table["reviewText"][used_rows].tolist(),
            "stars": stars[used_rows],
            "published": np.asarray(_PARTS, dtype=object)[codes[used_rows]].tolist(),
            "reviewer": table["reviewerID"][used_rows].tolist(),
            "product": table["asin"][used_rows].tolist(),
            "category": table["category"][used_rows].tolist(),
            "year": parse_integers(table["reviewYear"][used_rows], f"{archive.where}: reviews.csv: reviewYear"),
        }
    )
