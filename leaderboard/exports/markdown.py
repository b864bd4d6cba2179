"""Markdown tables (GitHub Flavored Markdown), one a table of the board, with what they mean beneath."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.plot._panels import one_line
from ...benchmarks.tables.markdown import escaped
from ..entries import Standing
from ..tables.snapshot import Snapshot
from ..tables.table_view import TableView
from ._grid import NUMBERS, caption, cells, columns


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
    names = columns(table_view)
    rule = ["---:" if name in NUMBERS else "---" for name in names]
    rows = [[escaped(cells(table_view, row)[name]) for name in names] for row in table_view.rows]
    grid = [names, rule, *rows]
    lines = [f"| {' | '.join(row)} |" for row in grid]
    return "\n".join([f"## {escaped(table_view.table.heading)}\n", *lines]) + f"\n\n{escaped(caption(table_view))}\n"
