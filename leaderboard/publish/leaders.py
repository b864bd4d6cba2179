"""Leaders on each kind of shift, and whether the lead is significant: the first content of the home page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...splits.manifest import KINDS
from .home_rows import ModelRow

WHAT = {
    "domain": "Test data come from other domains: places, years, speakers or styles.",
    "length": "Test inputs or answers are longer than any in training.",
    "compositional": "Test rows combine known parts in combinations that do not occur in training.",
    "easy-to-hard": "Models train on easy problems and are tested on hard ones.",
    "corrupted-label": "Some training labels are wrong; the test labels are correct.",
}
"""Each kind of shift in a sentence."""

NAMED = 3
"""Maximum number of leaders that are named; the others are counted."""


@dataclass(frozen=True)
class Lead:
    """The leaders of a kind, under the protocol with the most entries. real: whether one model is significantly ahead
    of all others on every benchmark of the kind."""

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
        """Number of leaders that are not named."""
        return max(0, len(self.leaders) - NAMED)


def find_leads(rows: Sequence[ModelRow]) -> list[Lead]:
    """Return one `Lead` per kind of shift, in the order of the kinds; a kind without entries has no leaders."""
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
    """Sort key: the published protocol first, then the one with the most entries, then the full budget."""
    (budget, protocol), rows = item
    entries = sum(row.cells[kind].has for row in rows)
    return protocol == "as published", entries, budget == "full", (budget, protocol)


def count_by_kind(rows: Sequence[ModelRow]) -> Mapping[str, int]:
    """Return the number of rows with an entry of each kind, without kinds that have none."""
    counts = {kind: sum(kind in row.cells for row in rows) for kind in KINDS}
    return {kind: count for kind, count in counts.items() if count}
