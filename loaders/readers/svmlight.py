"""Sparse rows in SVMlight's format: `label number:value number:value ..`, such as bags of words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from ...core.errors import BadData

if TYPE_CHECKING:
    import pyarrow as pa

_PAIR = re.compile(r"(\d+):(\d+)")
_NONE: Mapping[str, dict[str, str]] = MappingProxyType({})


def read(
    files: dict[str, Path],
    *,
    words: str,
    label: str,
    levels: list[str],
    prefix: str = "t",
    origin: Mapping[str, dict[str, str]] = _NONE,
) -> pa.Table:
    """Read the rows of all files in order.

    words: the field with a row's terms as text: term 17 is "t17" (`prefix`), repeated as often as it was counted, in
    the order of the terms' numbers. label: the field with the index of the row's label in `levels`. origin:
    `{field: {file: text}}`, fields that depend on the file. Raises `BadData` with file and line if a line has another
    format, a value that is not a count, or a label that is not in `levels`.
    """
    import pyarrow as pa

    texts, labels, rows = [], [], []
    for name, path in files.items():
        lines = path.read_text("ascii", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            first, *pairs = line.split() or [""]
            if first not in levels:
                raise BadData(f"{name}, line {number}: begins with {first!r}, which is not one of {', '.join(levels)}")
            labels.append(levels.index(first))
            texts.append(_format_terms(pairs, prefix, f"{name}, line {number}"))
        rows.append(len(lines))
    fields = {words: pa.array(texts, pa.string()), label: np.array(labels, np.int64)}
    for field, meanings in origin.items():
        fields[field] = pa.array(np.repeat([meanings[name] for name in files], rows).tolist(), pa.string())
    return pa.table(fields)


def _format_terms(pairs: list[str], prefix: str, where: str) -> str:
    matches = [(pair, _PAIR.fullmatch(pair)) for pair in pairs]
    terms: list[tuple[int, int]] = []
    for pair, match in matches:
        if match is None:
            raise BadData(f"{where}: {pair!r} is not a pair number:count")
        terms.append((int(match[1]), int(match[2])))
    return " ".join(f"{prefix}{term}" for term, count in sorted(terms) for _ in range(count))
