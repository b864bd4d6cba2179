"""The ranked entries of a table: those over which rank sets are computed. All others are listed unranked, with the
reason.

An entry is ranked if

1. it has no protocol violation (`EntryRows.odd`, protocol.py);
2. its seeds are those of the protocol, 0 to n - 1 (further seeds in that order are permitted);
3. every seed is better on ID than the best constant prediction (constant_baseline.py): none failed;
4. it is its team's only one: of a team's entries that satisfy 1 to 3, the newest whose card says `choose`, else the
   first.

None of this depends on an OOD score. Rules 1 to 3 use cards and ID rows, rule 4 the order of submission and a choice
declared before scoring. So rank sets are as valid as over a set of entries that was fixed beforehand
(docs/statistics.md has simulations with adversarial entries), and entries that are left out do not widen any rank set.

Reference entries, which the board's operator declares in the ledger (operations/reference.py), are always ranked.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.statistics.ranks import Better
from ..entries import ScoredEntry
from ..teams import identify_team
from .row_scores import EntryRows
from .standings import Table


def find_unranked_entries(table: Table, rows: Mapping[str, EntryRows], arrived: Mapping[str, int]) -> dict[str, str]:
    """The entries of a table that are not ranked, each with the reason. rows: the row scores of its entries; entries
    without row scores are not ranked either; arrived: each entry's position in the ledger."""
    scored_rows = sorted(
        (standing for standing in table.rows if standing.entry in rows), key=lambda standing: arrived[standing.entry]
    )
    left_out: dict[str, str] = {}
    teams: dict[str, list[ScoredEntry]] = {}
    for standing in scored_rows:
        if standing.reference:
            continue
        if why := _find_violation(standing, rows[standing.entry], table.better):
            left_out[standing.entry] = why
        else:
            teams.setdefault(identify_team(standing), []).append(standing)
    for entries in teams.values():
        chosen = next((standing for standing in reversed(entries) if standing.choose), entries[0])
        for standing in entries:
            if standing is not chosen:
                left_out[standing.entry] = f"its team is ranked by entry {chosen.entry}"
    return left_out


def _find_violation(standing: ScoredEntry, rows: EntryRows, better: Better) -> str:
    """The reason why an entry cannot be ranked, whatever its team's others; empty if there is none."""
    if rows.odd:
        return "; ".join(rows.odd)
    seeds, due = sorted(standing.score.seeds), standing.score.protocol_seeds
    if len(seeds) < due:
        return f"it has {len(seeds)} of the protocol's {due} seeds"
    if seeds != list(range(len(seeds))):
        seed_list = ", ".join(map(str, seeds[:10])) + (" .." if len(seeds) > 10 else "")
        return f"its seeds are {seed_list}; the protocol's are 0 to {due - 1}"
    if rows.floor is None:
        return ""
    sign = 1 if better == "higher" else -1
    for seed, value in zip(standing.score.seeds, rows.id.per_seed, strict=True):
        if not sign * value > sign * rows.floor:
            return f"seed {seed} scores {value:.4g} on ID, no better than a constant prediction ({rows.floor:.4g})"
    return ""
