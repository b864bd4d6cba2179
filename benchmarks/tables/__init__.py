"""Tables of score records: one file per format, found by its name, so that a new format is a new file.

A format's module has `render(records) -> str`; it sees records that are whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...core.plugins import module, named
from ..plot._panels import checked
from ..scoring.record import Score


def formats() -> list[str]:
    """The names of the formats there are, sorted."""
    return sorted(named("benchmarks/tables", ".py"))


def render(records: Sequence[Score], format: str) -> str:
    """The records as a table, one row each, in their order: ID, OOD, gap and worst group with their intervals.

    `latex` and `markdown` are for people: rounded, in percent where the metric lies in [0, 1]; `csv` is for machines:
    all digits, as recorded. A score that there is not is an empty cell. Raises `UnknownName` for another format, and
    `FarshiftError` for no record or one of another version."""
    writer = module("benchmarks/tables", format, "table format")
    text: str = writer.render(checked(records))
    return text
