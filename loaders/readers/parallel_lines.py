"""Inputs and outputs in two parallel files of lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData

if TYPE_CHECKING:
    import pyarrow as pa


def read(
    files: dict[str, Path], *, pairs: dict[str, list[str]], given: str, wanted: str, counted: list[str] | None = None
) -> pa.Table:
    """Fields: the line of the first file (named by `given`) and of the second (named by `wanted`), `published` (the key
    of `pairs`, which gives the two files), `skeleton` (the line's words that are in `counted`), and `functions` (their
    number)."""
    import pyarrow as pa

    known = set(counted or ())
    rows: dict[str, list[str | int]] = {name: [] for name in (given, wanted, "published", "skeleton", "functions")}
    for part, (source, target) in pairs.items():
        left, right = (files[name].read_text("utf-8").splitlines() for name in (source, target))
        if len(left) != len(right):
            raise BadData(f"{source} has {len(left):,} lines, but {target} has {len(right):,}: they must be the same")
        for line, target_line in zip(left, right, strict=True):
            rows[given].append(line.strip())
            rows[wanted].append(target_line.strip())
            rows["published"].append(part)
            known_words = [word for word in line.split() if word in known]
            rows["skeleton"].append(" ".join(known_words))
            rows["functions"].append(len(known_words))
    return pa.table(rows)
