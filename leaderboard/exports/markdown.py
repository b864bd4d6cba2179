"""Markdown tables (GitHub Flavored Markdown), one a table of the board, with what they mean beneath."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.plot._panels import one_line
from ...benchmarks.tables.markdown import escaped, written
from ..entries import Standing
from ..tables.snapshot import Snapshot
from ..tables.table_view import TableView
from ._grid import grid


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """One file: every table, and what is listed apart."""
    parts = [f"# {escaped(board.name)}\n", *(_table(table_view) for table_view in board.views)]
    if board.apart:
        lines = [f"- {escaped(_apart(one))}" for one in board.apart]
        parts.append("\n".join(["## Listed apart\n", *lines]) + "\n")
    return {"standings.md": "\n".join(parts).encode()}


def _apart(one: Standing) -> str:
    score, left = one.score, one.left
    assert left is not None
    return f"{one_line(score.model)} on {score.benchmark}: {left.kind}, {left.reason}"


def _table(table_view: TableView) -> str:
    return f"## {escaped(table_view.table.heading)}\n\n{written(grid(table_view))}"
