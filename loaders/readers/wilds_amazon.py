"""Amazon reviews as WILDS publishes them: `reviews.csv`, and beside it `splits/<scheme>.csv` with a part for each
row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import BadData
from ._layout import columns_of, whole, whole_numbers

if TYPE_CHECKING:
    import pyarrow as pa

_PARTS = ("train", "val", "id_val", "test", "id_test")
_UNUSED = -1


def read(files: dict[str, Any], *, scheme: str) -> pa.Table:
    """`review`, `stars` (0 to 4), `published` (train, val, id_val, test, id_test), `reviewer`, `product`, `category`
    and `year` of the rows that the scheme uses."""
    import pyarrow as pa

    held = whole(files)
    name = f"splits/{scheme}.csv"
    codes = whole_numbers(columns_of(held, name, ("split",))["split"], f"{held.where}: {name}")
    if codes.size and (codes.min() < _UNUSED or codes.max() >= len(_PARTS)):
        raise BadData(f"{held.where}: {name} has the parts {codes.min()} to {codes.max()}, not -1 to 4")
    wanted = ("reviewText", "overall", "reviewerID", "asin", "category", "reviewYear")
    table = columns_of(held, "reviews.csv", wanted)
    if len(codes) != len(table["overall"]):
        raise BadData(f"{held.where}: {name} has {len(codes):,} rows, and reviews.csv {len(table['overall']):,}")
    stars = whole_numbers(table["overall"], f"{held.where}: reviews.csv: overall") - 1
    kept = np.flatnonzero(codes != _UNUSED)
    return pa.table(
        {
            "review": table["reviewText"][kept].tolist(),
            "stars": stars[kept],
            "published": np.asarray(_PARTS, dtype=object)[codes[kept]].tolist(),
            "reviewer": table["reviewerID"][kept].tolist(),
            "product": table["asin"][kept].tolist(),
            "category": table["category"][kept].tolist(),
            "year": whole_numbers(table["reviewYear"][kept], f"{held.where}: reviews.csv: reviewYear"),
        }
    )
