"""Markdown tables (GitHub Flavored Markdown), one per table of the board, each with an explanation below."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.plot._panels import collapse_whitespace
from ...benchmarks.tables.markdown import escape_markdown, format_markdown
from ..tables.snapshot import Snapshot
from ._table import make_grid


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """Return one file with all tables, and the withdrawn and removed entries."""
    parts = [f"# {escape_markdown(board.name)}\n"]
    for view in board.views:
        parts.append(f"## {escape_markdown(view.heading)}\n\n{format_markdown(make_grid(view))}")
    lines = []
    for entry in board.apart:
        assert entry.left is not None
        model = collapse_whitespace(entry.score.model)
        text = f"{model} on {entry.score.benchmark}: {entry.left.kind}, {entry.left.reason}"
        lines.append(f"- {escape_markdown(text)}")
    if lines:
        parts.append("\n".join(["## Withdrawn and removed entries\n", *lines]) + "\n")
    return {"standings.md": "\n".join(parts).encode()}
