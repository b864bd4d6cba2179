"""The field of a table: the entries over which rank sets are taken. All others stay listed, unranked, with the reason.

An entry is of the field where

1. nothing of it is against the protocol (`EntryRows.odd`, protocol.py);
2. its seeds are those of the protocol, 0 to n - 1 (more in that order do no harm);
3. every seed is better on ID than the best constant answer there (given.py): none failed;
4. it is no near copy of another team's earlier entry of the field (benchmarks/statistics/near_copies.py);
5. its team has no other: of those that hold to 1 to 3 the newest whose card says `choose`, else the first.

None of this looks at an OOD score. Rules 1 to 3 read cards and ID rows, 4 whether answers are equal and not whether
they are right, 5 the order of entering and what was said before anything was scored. So rank sets hold over the field
as over any that was fixed beforehand (docs/statistics.md has it simulated with hostile fields), and no number of
entries that are left out widens anybody's set.

Reference entries, which the board's operator declares in the ledger (operations/reference.py), are of the field as
they are, all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ...benchmarks.statistics.near_copies import NearPairs
from ...benchmarks.statistics.ranks import Better
from ..entries import Standing
from ..teams import team_of
from .row_scores import EntryRows
from .standings import Table


@dataclass(frozen=True)
class Field:
    """left_out: the entries that are not of the field, each with why; copy_of: of near copies, the entry that they are
    one with."""

    left_out: dict[str, str] = field(default_factory=dict)
    copy_of: dict[str, str] = field(default_factory=dict)


def field_of(
    table: Table, rows: Mapping[str, EntryRows], arrived: Mapping[str, int], near: NearPairs | None = None
) -> Field:
    """The field of a table. rows: the row scores of its entries, those that have none here being ranked nowhere;
    arrived: when each came, by its place in the ledger; near: what is known already of which are near copies, by the
    rows' keys."""
    here = sorted((one for one in table.rows if one.entry in rows), key=lambda one: arrived[one.entry])
    found = Field()
    eligible = []
    for one in here:
        why = "" if one.reference else _against_rules(one, rows[one.entry], table.better)
        if why:
            found.left_out[one.entry] = why
        else:
            eligible.append(one)
    _leave_copies_out(eligible, rows, found, near or NearPairs())
    _leave_others_of_teams_out([one for one in eligible if not one.reference], found)
    return found


def _against_rules(one: Standing, rows: EntryRows, better: Better) -> str:
    """What keeps an entry by itself out of the field; empty for nothing."""
    if rows.odd:
        return "; ".join(rows.odd)
    seeds, due = sorted(one.score.seeds), one.score.protocol_seeds
    if len(seeds) < due:
        return f"it has {len(seeds)} of the protocol's {due} seeds"
    if seeds != list(range(len(seeds))):
        shown = ", ".join(map(str, seeds[:10])) + (" .." if len(seeds) > 10 else "")
        return f"its seeds are {shown}; the protocol's are 0 to {due - 1}"
    if rows.floor is None:
        return ""
    sign = 1 if better == "higher" else -1
    for seed, value in zip(one.score.seeds, rows.id.per_seed, strict=True):
        if not sign * value > sign * rows.floor:
            return f"seed {seed} scores {value:.4g} on ID, no better than a constant answer ({rows.floor:.4g})"
    return ""


def _leave_copies_out(
    eligible: Sequence[Standing], rows: Mapping[str, EntryRows], found: Field, near: NearPairs
) -> None:
    known = [(one, given) for one in eligible if (given := rows[one.entry].given) is not None]
    names, teams = [rows[one.entry].key or one.entry for one, _ in known], [team_of(one) for one, _ in known]
    for (one, _), of in zip(known, near.copies(names, [given for _, given in known], teams), strict=True):
        if of is not None and not one.reference:
            found.copy_of[one.entry] = known[of][0].entry
            found.left_out[one.entry] = f"as entry {known[of][0].entry}: its answers are the same or nearly so"


def _leave_others_of_teams_out(eligible: Sequence[Standing], found: Field) -> None:
    teams: dict[str, list[Standing]] = {}
    for one in eligible:
        if one.entry not in found.left_out:
            teams.setdefault(team_of(one), []).append(one)
    for entries in teams.values():
        chosen = next((one for one in reversed(entries) if one.choose), entries[0])
        for one in entries:
            if one is not chosen:
                found.left_out[one.entry] = f"its team is ranked by entry {chosen.entry}"
