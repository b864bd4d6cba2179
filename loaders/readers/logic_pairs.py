"""Pairs of formulas of propositional logic and how they relate (Bowman, Manning and Potts 2015, arXiv 1506.04834):
lines of a relation and two bracketed formulas, a file for each length."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import BadData, BadDefinition
from ._utf8_lines import read_utf8_lines

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Path], *, relations: list[str], lengths: dict[str, int]) -> pa.Table:
    """Fields: `left` and `right`; `relation`, the index of its sign in `relations`; `length`, as `lengths` gives it for
    the file; `origin`, the file's name without its number (train or test). Brackets and words have single spaces."""
    import pyarrow as pa

    if set(files) != set(lengths):
        raise BadDefinition("logic_pairs: `lengths` and the files of the distribution differ")
    columns: dict[str, list[str | int]] = {name: [] for name in ("left", "right", "relation", "length", "origin")}
    for name, length in lengths.items():
        for number, line in enumerate(read_utf8_lines(name, files[name]), 1):
            cells = line.split("\t")
            if len(cells) != 3 or cells[0] not in relations:
                raise BadData(f"{name}: line {number} is not a relation and two formulas: {line[:60]!r}")
            columns["left"].append(" ".join(cells[1].split()))
            columns["right"].append(" ".join(cells[2].split()))
            columns["relation"].append(relations.index(cells[0]))
            columns["length"].append(length)
            columns["origin"].append(name.rstrip("0123456789"))
    return pa.table(columns)
