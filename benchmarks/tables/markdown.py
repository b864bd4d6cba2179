"""A Markdown table (GitHub Flavored Markdown, section 4.10), with its caption as a paragraph below."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..scoring.record import Score
from ._grid import Grid, make_grid

MEANT = re.compile(r"[\\|*`<>\[\]~$&]|(?<![^\W_])_|_(?![^\W_])")
"""Markdown's special characters; an underscore inside a word is not special and is not escaped."""


def render(records: Sequence[Score]) -> str:
    """Render the records as a table."""
    return format_markdown(make_grid(records))


def format_markdown(table: Grid) -> str:
    """Format a header, a rule and one line per row, numbers right-aligned; the caption follows."""
    number = [name in table.numbers for name in table.columns]
    head = [escape_markdown(name) for name in table.columns]
    rule = ["---:" if each else "---" for each in number]
    rows = [
        [cell if each else escape_markdown(cell) for cell, each in zip(row, number, strict=True)] for row in table.rows
    ]
    lines = [_format_line(cells) for cells in (head, rule, *rows)]
    return "\n".join(lines) + f"\n\n{escape_markdown(table.caption)}\n"


def escape_markdown(text: str) -> str:
    """Escape a text for Markdown."""
    return MEANT.sub(r"\\\g<0>", text)


def _format_line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
