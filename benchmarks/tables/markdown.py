"""A Markdown table (GitHub Flavored Markdown, section 4.10), with its caption as a paragraph beneath."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..scoring.record import Score
from ._grid import SCORES, grid

MEANT = re.compile(r"[\\|*`<>\[\]~$&]|(?<![^\W_])_|_(?![^\W_])")
"""Characters that would mean something; an underscore inside a word means nothing, and is left readable."""


def render(records: Sequence[Score]) -> str:
    """Header, rule and one line per row; scores to the right."""
    table = grid(records)
    score = [name in SCORES for name in table.columns]
    rows = [[cell if number else escaped(cell) for cell, number in zip(row, score, strict=True)] for row in table.rows]
    rule = ["---:" if number else "---" for number in score]
    lines = [_line(cells) for cells in (table.columns, rule, *rows)]
    return "\n".join(lines) + f"\n\n{escaped(table.caption)}\n"


def escaped(text: str) -> str:
    """The text as Markdown prints it."""
    return MEANT.sub(r"\\\g<0>", text)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
