"""LaTeX tables with booktabs rules, one a table of the board: needs `\\usepackage{booktabs}`, and UTF-8 input."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.plot._panels import in_percent
from ...benchmarks.statistics.interval import Estimate
from ...benchmarks.tables.latex import escaped, written
from ..tables.snapshot import Snapshot
from ..tables.table_view import Row, TableView
from ._grid import caption, rank_set, standard_error, words

PLUS_MINUS = "The number after $\\pm$ is the standard error, over test rows and training seeds."


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """One file with a `table` environment for each table."""
    return {"standings.tex": "\n".join(_table(table_view) for table_view in board.views).encode()}


def _table(table_view: TableView) -> str:
    worst = any(row.worst for row in table_view.rows)
    head = ["rank", "ties", "model", "ID", "OOD", "gap", *(["worst group"] if worst else []), "best"]
    shape = "lllrrr" + "r" * worst + "r"
    above = rf"{escaped(table_view.table.heading)}. {_escaped(caption(table_view))} {PLUS_MINUS}"
    return written(above, shape, head, [_cells(row, worst) for row in table_view.rows])


def _escaped(text: str) -> str:
    return escaped(text).replace("±", r"$\pm$")


def _cells(row: Row, worst: bool) -> list[str]:
    score = row.standing.score
    percent = in_percent(score)
    return [
        rank_set(row).replace("-", "--"),
        escaped(row.ties),
        escaped(score.model),
        *(_number(found, percent) for found in (score.id, score.ood, score.gap)),
        *([words(row.worst, percent).replace("-", "$-$")] if worst else []),
        "" if row.best is None else f"{row.best:.2f}",
    ]


def _number(found: Estimate, percent: bool) -> str:
    scale, digits = (100, 1) if percent else (1, 3)
    value, error = (f"{scale * number:z.{digits}f}" for number in (found.value, standard_error(found)))
    return rf"${value} \pm {error}$"
