"""LaTeX tables with booktabs rules, one a table of the board: needs `\\usepackage{booktabs}`, and UTF-8 input."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.plot._panels import in_percent, metric_in_words
from ...benchmarks.statistics.interval import Estimate
from ...benchmarks.tables._booktabs import Column, Notes, escaped, table, tabular
from ..tables.snapshot import Snapshot
from ..tables.table_view import Row, TableView
from ._grid import rank_set, standard_error, words

OPTIONS = {
    "caption": "what stands above; of several tables its beginning",
    "label": "the label; of several tables its beginning",
}

PLUS_MINUS = "The number after ± is the standard error, over test rows and training seeds."
BOLD = "Bold: the best OOD score, and those that share a letter with it."


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """One file with a `table` environment for each table."""
    alone = len(board.views) == 1
    return {"standings.tex": "\n".join(_table(view, options, alone) for view in board.views).encode()}


def _table(table_view: TableView, options: Mapping[str, str], alone: bool) -> str:
    rows, heading = table_view.rows, table_view.table.heading
    worst = any(row.worst for row in rows)
    group = escaped(metric_in_words(rows[0].standing.score))
    heads = ["ID", "OOD", "gap", *(["worst group"] if worst else [])]
    columns = [Column(name, number=False) for name in ("rank", "ties", "model")]
    columns += [*(Column(head, group) for head in heads), Column("best")]
    cells = [_cells(row, worst, table_view.ranked > 1 and _leads(row)) for row in rows]
    notes = Notes([*([BOLD] if table_view.ranked > 1 else []), *table_view.notes, PLUS_MINUS])
    caption, label = options.get("caption", ""), options.get("label", "")
    if not alone:
        caption = f"{caption} {heading}." if caption else ""
        label = f"{label}:{table_view.table.anchor}" if label else ""
    label = label or f"tab:{table_view.table.anchor}"
    return table([tabular(columns, cells)], caption or f"{heading}.", label, notes)


def _leads(row: Row) -> bool:
    """Whether an entry is the first, or does not differ significantly from it."""
    return row.rank is not None and (row.behind is None or not row.behind["told_apart"])


def _cells(row: Row, worst: bool, bold: bool) -> list[str]:
    score = row.standing.score
    percent = in_percent(score)
    return [
        rank_set(row).replace("-", "--"),
        escaped(row.ties),
        escaped(score.model),
        *(_number(found, percent, bold and found is score.ood) for found in (score.id, score.ood, score.gap)),
        *([words(row.worst, percent).replace("-", "$-$")] if worst else []),
        "" if row.best is None else f"{row.best:.2f}",
    ]


def _number(found: Estimate, percent: bool, bold: bool = False) -> str:
    scale, digits = (100, 1) if percent else (1, 3)
    value, error = (f"{scale * number:z.{digits}f}" for number in (found.value, standard_error(found)))
    signed = value.replace("-", "$-$")
    return (rf"\textbf{{{signed}}}" if bold else signed) + rf" $\pm$ {error}"
