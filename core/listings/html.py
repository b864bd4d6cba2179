"""Tables in HTML for notebooks. Every text is escaped: names and titles come from files that anybody may write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape as _escape

from .visible import LINES, visible


def escape(text: str) -> str:
    """A text as a page may hold it: no markup, and nothing that a browser would obey or hide."""
    return _escape(visible(text, LINES))


def table(rows: Sequence[Mapping[str, object]], caption: str = "", note: str = "") -> str:
    """Rows of cells by column as one HTML table, the caption above it and a note below. Rows may lack columns."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = _row("th", columns)
    body = "".join(_row("td", [str(row.get(column, "")) for column in columns]) for row in rows)
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    below = f"<p>{escape(note)}</p>" if note else ""
    return f"<table>{said}<thead>{head}</thead><tbody>{body}</tbody></table>{below}"


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
