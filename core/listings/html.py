"""Tables in HTML for notebooks. Every text is escaped: names and titles come from files that anybody may write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape as _escape

from .untrusted_text import LINES, escape_untrusted


def escape_html(text: str) -> str:
    """A text escaped for a page: no markup, control or invisible characters."""
    return _escape(escape_untrusted(text, LINES))


def render_table(rows: Sequence[Mapping[str, object]], caption: str = "", note: str = "") -> str:
    """Rows of cells by column as one HTML table, the caption above it and a note below. Rows may lack columns."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = _render_row("th", columns)
    body = "".join(_render_row("td", [str(row.get(column, "")) for column in columns]) for row in rows)
    caption_html = f"<caption>{escape_html(caption)}</caption>" if caption else ""
    note_html = f"<p>{escape_html(note)}</p>" if note else ""
    return f"<table>{caption_html}<thead>{head}</thead><tbody>{body}</tbody></table>{note_html}"


def _render_row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape_html(cell)}</{tag}>' for cell in cells)}</tr>"
