"""A source that is defined and not pinned: nobody has had its bytes in hand here, so that no digest can be promised."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import Unavailable

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path], *, at: str, form: str) -> pa.Table:
    """Always raises `Unavailable`, which says where the data are published (`at`), in what form, and what to do with a
    copy: list its files with their sha256 in the source's distribution, under a reader of that form."""
    raise Unavailable(
        f"published at {at} as {form}; no copy is pinned yet: name your files with sha256 and bytes, and their reader, "
        "in this distribution"
    )
