"""Markdown tables (GitHub Flavored Markdown), one per table of the board, each with an explanation below."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.plot._panels import collapse_whitespace
from ...benchmarks.tables.markdown import escape_markdown, format_markdown
from ..entries import ScoredEntry
from ..tables.snapshot import Snapshot
from ..tables.table_view import TableView
from ._grid import make_grid


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """Return one file with all tables, and the withdrawn and removed entries."""
    parts = [f"# {escape_markdown(board.name)}\n", *(_format_table(table_view) for table_view in board.views)]
    if board.apart:
        lines = [f"- {escape_markdown(_format_removed(entry))}" for entry in board.apart]
        parts.append("\n".join(["## Withdrawn and removed entries\n", *lines]) + "\n")
    return {"standings.md": "\n".join(parts).encode()}


def _format_removed(entry: ScoredEntry) -> str:
    score, left = entry.score, entry.left
    assert left is not None
    return f"{collapse_whitespace(score.model)} on {score.benchmark}: {left.kind}, {left.reason}"


def _format_table(table_view: TableView) -> str:
    return f"## {escape_markdown(table_view.table.heading)}\n\n{format_markdown(make_grid(table_view))}"
