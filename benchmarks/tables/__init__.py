"""Tables of score records: one file per format, found by its name, so that a new format is a new file.

A format's module has `render_table(records) -> str`; it sees records that are whole. `OPTIONS` names the options that
it takes besides, by keyword: `caption` and `label` (text; empty for its own), `leaders` (which records lead).
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.errors import FarshiftError
from ...core.plugins import find_files_by_name, load_module
from ..plot._panels import check_records
from ..scoring.record import Score


def list_formats() -> list[str]:
    """The names of the formats there are, sorted."""
    return sorted(find_files_by_name("benchmarks/tables", ".py"))


def render_table(
    records: Sequence[Score], format: str, *, caption: str = "", label: str = "", leaders: Sequence[bool] | None = None
) -> str:
    """The records as a table: ID, OOD, gap and worst group with their intervals.

    `latex` is for a paper: a row for each model, the benchmarks side by side, under a `caption` and with a `label` to
    refer to; the OOD scores of `leaders` (`comparison.find_leaders`; by default those whose intervals overlap with that
    of the best) are bold. `markdown` is for people, a row for each record. Both are rounded, in percent where the
    metric lies in [0, 1]. `csv` is for machines: all digits, as recorded. A score that there is not is an empty cell.
    Raises `UnknownName` for another format, and `FarshiftError` for no record, one of another version, or a caption or
    label of a format that has none."""
    writer = load_module("benchmarks/tables", format, "table format")
    accepted = getattr(writer, "OPTIONS", ())
    for name, given in (("caption", caption), ("label", label)):
        if given and name not in accepted:
            raise FarshiftError(f"the format {format} has no {name}: leave --{name} out")
    options = {"caption": caption, "label": label, "leaders": leaders}
    text: str = writer.render(
        check_records(records), **{name: value for name, value in options.items() if name in accepted}
    )
    return text
