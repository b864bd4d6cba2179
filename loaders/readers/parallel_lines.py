"""Inputs and outputs in two files, line by line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData

if TYPE_CHECKING:
    import pyarrow as pa


def read(
    files: dict[str, Path], *, pairs: dict[str, list[str]], given: str, wanted: str, counted: list[str] | None = None
) -> pa.Table:
    """`given` and `wanted` (fields) of each line, `published` (the key of `pairs`, which names the two files),
    `skeleton` (those of the line's words that are among `counted`), and `functions`: how many those are."""
    import pyarrow as pa

    known = set(counted or ())
    rows: dict[str, list[str | int]] = {name: [] for name in (given, wanted, "published", "skeleton", "functions")}
    for part, (source, target) in pairs.items():
        left, right = (files[name].read_text("utf-8").splitlines() for name in (source, target))
        if len(left) != len(right):
            raise BadData(f"{source} has {len(left):,} lines, and {target} {len(right):,}: they do not belong together")
        for line, target_line in zip(left, right, strict=True):
            rows[given].append(line.strip())
            rows[wanted].append(target_line.strip())
            rows["published"].append(part)
            known_words = [word for word in line.split() if word in known]
            rows["skeleton"].append(" ".join(known_words))
            rows["functions"].append(len(known_words))
    return pa.table(rows)
