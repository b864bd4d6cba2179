"""Tables of score records, one file per format. To add a format, add a file.

A format module has `render(records) -> str`; the records it receives are complete. `OPTIONS` names the keyword
arguments that it also accepts: `caption` and `label` (text; empty for the default), `leaders` (which records lead).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import FarshiftError
from ...core.plugins import load_module
from ..plot._panels import check_records
from ..scoring.record import Score


def render_table(
    records: Sequence[Score], format: str, *, caption: str = "", label: str = "", leaders: Sequence[bool] | None = None
) -> str:
    """Render the records as a table: ID, OOD, gap and worst group with their intervals.

    `markdown` has a row for each record. `latex` is for a paper: the rows of each benchmark are a block, with a
    `caption` and a `label`; the OOD scores of `leaders` (`comparison.compare.find_leaders`) are bold. Both are rounded,
    and in percent if the metric lies in [0, 1]. `csv` has all digits, as recorded. A missing score is an empty cell.
    Raises `UnknownName` for an unknown format, and `FarshiftError` if there are no records, for a record of another
    version, and for a caption or label if the format has none."""
    writer = load_module("benchmarks/tables", format, "table format")
    accepted = getattr(writer, "OPTIONS", ())
    for name, given in (("caption", caption), ("label", label)):
        if given and name not in accepted:
            raise FarshiftError(f"the format {format} has no {name}: omit --{name}")
    options = {"caption": caption, "label": label, "leaders": leaders}
    text: str = writer.render(
        check_records(records), **{name: value for name, value in options.items() if name in accepted}
    )
    return text
