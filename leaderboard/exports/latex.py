"""LaTeX tables with booktabs rules, one per table of the board. They need `\\usepackage{booktabs}` and UTF-8 input."""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.plot._panels import format_metric, is_percent
from ...benchmarks.scoring.trained_check import MARK
from ...benchmarks.statistics.interval import Estimate
from ...benchmarks.tables.latex import escape_latex, format_table, format_tabular
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table
from ._table import compute_standard_error, format_interval, format_rank_set

OPTIONS = {
    "caption": "the caption; its beginning if there are several tables",
    "label": "the label; its beginning if there are several tables",
}

PLUS_MINUS = "The number after ± is the standard error, over test rows and training seeds."
ABSENT = ("Behind the first:", "Against ", "Attempts:")
"""The beginnings of notes on columns that these tables do not have."""

BOLD = "Bold: the best OOD score, and those that share a letter with it."


def files(board: Snapshot, options: Mapping[str, str]) -> dict[str, bytes]:
    """Return one file with a `table` environment for each table."""
    alone = len(board.views) == 1
    return {"standings.tex": "\n".join(_format_table(view, options, alone) for view in board.views).encode()}


def _format_table(table_view: Table, options: Mapping[str, str], alone: bool) -> str:
    rows, heading = table_view.rows, table_view.heading
    worst = any(row.worst for row in rows)
    heads = ["rank", "ties", "model", "ID", "OOD", "gap", *(["worst group"] if worst else []), "best"]
    cells = [_format_cells(row, worst, table_view.ranked > 1 and _is_leader(row)) for row in rows]
    absent = ABSENT if worst else (*ABSENT, "Brackets ")
    notes = [note for note in table_view.notes if not note.startswith(absent)]
    note = " ".join([*([BOLD] if table_view.ranked > 1 else []), *notes, PLUS_MINUS])
    caption, label = options.get("caption", ""), options.get("label", "")
    if not alone:
        caption = f"{caption} {heading}." if caption else ""
        label = f"{label}:{table_view.anchor}" if label else ""
    metric = format_metric(rows[0].standing.score)
    tabular = format_tabular(heads, [False] * 3 + [True] * (len(heads) - 3), [(metric, cells)])
    return format_table(tabular, caption or f"{heading}.", label or f"tab:{table_view.anchor}", note)


def _is_leader(row: Row) -> bool:
    """Return whether an entry is the first, or does not differ significantly from it."""
    return row.rank is not None and (row.behind is None or not row.behind["told_apart"])


def _format_cells(row: Row, worst: bool, bold: bool) -> list[str]:
    score = row.standing.score
    percent = is_percent(score)
    return [
        format_rank_set(row).replace("-", "--"),
        escape_latex(row.ties),
        escape_latex(f"{score.model} ({MARK})" if row.not_learnt else score.model),
        *(
            _format_number(estimate, percent, bold and estimate is score.ood)
            for estimate in (score.id, score.ood, score.gap)
        ),
        *([format_interval(row.worst, percent).replace("-", "$-$")] if worst else []),
        "" if row.best is None else f"{row.best:.2f}",
    ]


def _format_number(estimate: Estimate, percent: bool, bold: bool = False) -> str:
    scale, digits = (100, 1) if percent else (1, 3)
    value, error = (f"{scale * number:z.{digits}f}" for number in (estimate.value, compute_standard_error(estimate)))
    signed = value.replace("-", "$-$")
    return (rf"\textbf{{{signed}}}" if bold else signed) + rf" $\pm$ {error}"
