"""A Markdown table (GitHub Flavored Markdown, section 4.10), with its caption as a paragraph beneath."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..scoring.record import Score
from ._grid import Grid, grid

MEANT = re.compile(r"[\\|*`<>\[\]~$&]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that would mean something; an underscore inside a word means nothing, and is left readable."""


def render(records: Sequence[Score]) -> str:
    """The records as a table."""
    return written(grid(records))


def written(table: Grid) -> str:
    """Header, rule and one line per row, numbers to the right; the caption beneath."""
    number = [name in table.numbers for name in table.columns]
    head = [escaped(name) for name in table.columns]
    rule = ["---:" if each else "---" for each in number]
    rows = [[cell if each else escaped(cell) for cell, each in zip(row, number, strict=True)] for row in table.rows]
    lines = [_line(cells) for cells in (head, rule, *rows)]
    return "\n".join(lines) + f"\n\n{escaped(table.caption)}\n"


def escaped(text: str) -> str:
    """The text as Markdown prints it."""
    return MEANT.sub(r"\\\g<0>", text)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
