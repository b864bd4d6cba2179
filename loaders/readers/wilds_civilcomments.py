"""CivilComments as published by WILDS: `all_data_with_identities.csv`, where every number is a share of annotators and
counts as 1 if it is at least one half."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._layout import get_archive, parse_floats, read_member_columns

if TYPE_CHECKING:
    import pyarrow as pa

IDENTITIES = ("male", "female", "LGBTQ", "christian", "muslim", "other_religions", "black", "white")
_HALF = 0.5


def read(files: dict[str, Any]) -> pa.Table:
    """Fields: `comment`, `toxic`, `published` (train, val or test), a field 0 or 1 for each identity, in lower case,
    and `identity`: the first identity that the comment mentions, or "none"."""
    import pyarrow as pa

    archive = get_archive(files)
    name = "all_data_with_identities.csv"
    table = read_member_columns(archive, name, ("comment_text", "toxicity", "split", *IDENTITIES))
    where = f"{archive.where}: {name}"

    def half(column: str) -> Any:
        return (parse_floats(table[column], f"{where}: {column}") >= _HALF).astype(np.int64)

    named = np.stack([half(column) for column in IDENTITIES], axis=1)
    first = np.where(named.any(axis=1), named.argmax(axis=1), len(IDENTITIES))
    return pa.table(
        {
            "comment": table["comment_text"].tolist(),
            "toxic": half("toxicity"),
            "published": table["split"].tolist(),
            "identity": [(*IDENTITIES, "none")[index].lower() for index in first],
            **{column.lower(): named[:, index] for index, column in enumerate(IDENTITIES)},
        }
    )
