"""Who leads on each kind of shift, and whether the lead is real: what a visitor should see first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...splits.manifest import KINDS
from .home_rows import ModelRow

WHAT = {
    "domain": "Test data come from elsewhere: other places, years, speakers, styles.",
    "length": "Test inputs or answers are longer than any in training.",
    "compositional": "Test rows combine known parts in combinations that training never shows.",
    "easy-to-hard": "Models train on easy problems and are tested on hard ones.",
    "corrupted-label": "Some training labels are wrong; the test labels are right.",
}
"""Each kind of shift in a sentence."""

NAMED = 3
"""So many leaders are named; the others are counted."""


@dataclass(frozen=True)
class Lead:
    """The leaders of a kind, under the protocol that has most entries there. real: whether one model is ahead of all
    others significantly, on every benchmark of the kind."""

    kind: str
    what: str
    protocol: str
    benchmarks: int
    models: int
    leaders: tuple[ModelRow, ...]
    most: int
    real: bool

    @property
    def others(self) -> int:
        """How many leaders are not named."""
        return max(0, len(self.leaders) - NAMED)


def find_leads(rows: Sequence[ModelRow]) -> list[Lead]:
    """One a kind of shift, in the order of the kinds; a kind without entries has none to name."""
    return [_find_lead(kind, rows) for kind in KINDS]


def _find_lead(kind: str, rows: Sequence[ModelRow]) -> Lead:
    protocols: dict[tuple[str, str], list[ModelRow]] = {}
    for row in rows:
        if kind in row.cells:
            protocols.setdefault((row.budget, row.protocol), []).append(row)
    if not protocols:
        return Lead(kind, WHAT[kind], "", 0, 0, (), 0, False)
    (budget, protocol), kind_rows = max(protocols.items(), key=lambda item: _make_sort_key(item, kind))
    most = max(row.cells[kind].first for row in kind_rows)
    leaders = tuple(row for row in kind_rows if row.cells[kind].first == most) if most else ()
    of = kind_rows[0].cells[kind].of
    alone = len(leaders) == 1 and most == of and sum(row.cells[kind].first for row in kind_rows) == most
    description = f"{budget} budget" + ("" if protocol == "as published" else f", {protocol}")
    return Lead(kind, WHAT[kind], description, of, len(kind_rows), leaders, most, alone and len(kind_rows) > 1)


def _make_sort_key(
    item: tuple[tuple[str, str], Sequence[ModelRow]], kind: str
) -> tuple[bool, int, bool, tuple[str, str]]:
    """The published protocol before others, then the one with most entries, then the full budget."""
    (budget, protocol), rows = item
    entries = sum(row.cells[kind].has for row in rows)
    return protocol == "as published", entries, budget == "full", (budget, protocol)


def count_by_kind(rows: Sequence[ModelRow]) -> Mapping[str, int]:
    """How many rows have an entry of each kind; kinds without any are left out."""
    counts = {kind: sum(kind in row.cells for row in rows) for kind in KINDS}
    return {kind: count for kind, count in counts.items() if count}
