"""Comma-separated values (RFC 4180): every number as recorded, with a column each for value, low and high."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from io import StringIO
from typing import Any

from ..scoring.record import Score
from ..statistics.interval import Estimate, NotAvailable, is_measured

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def render(records: Sequence[Score]) -> str:
    """Render a header and one line per record. `seeds` is their number; `steps` is empty for the budget's default."""
    return format_csv([_list_cells(record) for record in records])


def format_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format a header and one line per row, each ending in CRLF; all rows have the same columns. No rows give "".

    A text that a spreadsheet would run as a formula is prefixed with an apostrophe (OWASP, CSV Injection)."""
    text = StringIO()
    if rows:
        writer = csv.DictWriter(text, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {
                name: f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell
                for name, cell in row.items()
            }
            for row in rows
        )
    return text.getvalue()


def _list_cells(record: Score) -> dict[str, Any]:
    worst = record.worst_group
    first = ("benchmark", "kind", "metric", "better", "model", "budget", "steps")
    return {
        **{name: getattr(record, name) for name in first},
        "seeds": len(record.seeds),
        **{name: getattr(record, name) for name in ("protocol_seeds", "selection")},
        **_list_numbers("id", record.id),
        **_list_numbers("ood", record.ood),
        **_list_numbers("gap", record.gap),
        "worst_group": worst.group if worst else None,
        **_list_numbers("worst_group_score", worst.estimate if worst else None),
        **{name: getattr(record, name) for name in ("interval", "scorer", "entry_identity")},
    }


def _list_numbers(name: str, estimate: Estimate | NotAvailable | None) -> dict[str, float | None]:
    ends = {"": "value", "_low": "low", "_high": "high"}
    return {f"{name}{end}": getattr(estimate, key) if is_measured(estimate) else None for end, key in ends.items()}
