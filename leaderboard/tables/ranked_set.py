"""The field of a table: the entries over which rank sets are taken. All others stay listed, unranked, with the reason.

An entry is of the field where

1. nothing of it is against the protocol (`EntryRows.odd`, protocol.py);
2. its seeds are those of the protocol, 0 to n - 1 (more in that order do no harm);
3. every seed is better on ID than the best constant answer there (constant_baseline.py): none failed;
4. its team has no other: of those that hold to 1 to 3 the newest whose card says `choose`, else the first.

None of this looks at an OOD score. Rules 1 to 3 read cards and ID rows, 4 the order of entering and what was said
before anything was scored. So rank sets hold over the field as over any that was fixed beforehand (docs/statistics.md
has it simulated with hostile fields), and no number of entries that are left out widens anybody's set.

Reference entries, which the board's operator declares in the ledger (operations/reference.py), are of the field as
they are, all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...benchmarks.statistics.ranks import Better
from ..entries import ScoredEntry
from ..teams import identify_team
from .row_scores import EntryRows
from .standings import Table


def find_unranked_entries(table: Table, rows: Mapping[str, EntryRows], arrived: Mapping[str, int]) -> dict[str, str]:
    """The entries of a table that are not of its field, each with why. rows: the row scores of its entries, those that
    have none here being ranked nowhere; arrived: when each came, by its place in the ledger."""
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
    """What keeps an entry by itself out of the field; empty for nothing."""
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
            return f"seed {seed} scores {value:.4g} on ID, no better than a constant answer ({rows.floor:.4g})"
    return ""
