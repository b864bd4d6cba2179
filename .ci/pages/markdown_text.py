"""Tables and paragraphs in Markdown that GitHub and MkDocs read alike."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

WIDTH = 120


def join_page(*blocks: str) -> str:
    """A page of blocks with an empty line between them; empty blocks are left out."""
    return "\n\n".join(block.strip("\n") for block in blocks if block) + "\n"


def format_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; without rows nothing."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    if not lines:
        return ""
    return "\n".join("| " + " | ".join(line) + " |" for line in (columns, ["---"] * len(columns), *lines))


def fill_prose(text: str) -> str:
    """The paragraphs of a text, each wrapped."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in re.split(r"\n\s*\n", text)]
    return "\n\n".join(
        "\n".join(textwrap.wrap(paragraph, WIDTH, break_on_hyphens=False, break_long_words=False))
        for paragraph in paragraphs
    )
