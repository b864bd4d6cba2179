"""Views of tables: a board's tables with all that the statistics support, shown by pages and exports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...benchmarks.scoring.trained_check import MARK, TrainedCheck
from ...benchmarks.statistics.detectable import Detectable, measure_detectable
from ..entries import ScoredEntry
from ..teams import identify_team
from .row_scores import EntryRows
from .standings import Table
from .table_statistics import Pairs, Placement, RankedEntries, compare_with_baseline, compute_optimism, rank_entries


@dataclass(frozen=True, kw_only=True)
class Row(Placement):
    """An entry in its table, with its place.

    unranked: why it is not of the field, over which rank sets are taken (ranked_set.py), or has no rank set for another
    reason; empty for one that has; not_learnt: why its OOD score says nothing of the shift, empty for one that has
    learnt the task (benchmarks/scoring/trained_check.py); against: it minus the baseline, with p_holm and verdict;
    worst: its worst group, with a selection-adjusted interval; attempts: how many of its team were scored in this
    table, None where no team is named; optimism: on the team's best entry, how far selecting it is expected to raise
    it; declared: what its model card declares to have been trained on, compared with the benchmark; card: what its run
    and model cards say (entry_card.py)."""

    standing: ScoredEntry
    unranked: str = ""
    not_learnt: str = ""
    against: dict[str, Any] | None = None
    worst: dict[str, Any] | None = None
    attempts: int | None = None
    optimism: float | None = None
    declared: tuple[dict[str, Any], ...] = ()
    card: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        standing, score = self.standing, self.standing.score
        return {
            "entry": standing.entry,
            "model": score.model,
            "team": standing.team,
            "team_key": standing.team_key,
            "rank": None if self.rank is None else list(self.rank),
            "unranked": self.unranked,
            "not_learnt": self.not_learnt,
            "reference": standing.reference,
            "ties": self.ties,
            "best": self.best,
            **{name: _sort_by_key(getattr(score, name).to_dict()) for name in ("id", "ood", "gap")},
            "behind": self.behind,
            "against": self.against,
            "worst_group": self.worst,
            "seeds": len(score.seeds),
            "protocol_seeds": score.protocol_seeds,
            "attempts": self.attempts,
            "optimism": self.optimism,
            "declared": list(self.declared),
        }


def _sort_by_key(record: dict[str, Any]) -> dict[str, Any]:
    """Sorted by key, as in a stored score."""
    return dict(sorted(record.items()))


@dataclass(frozen=True)
class TableView:
    """A table with its rows, best first. ranked: how many of them have a rank set; baseline: the model that the others
    are compared with, empty for none; detectable: the minimum detectable difference of its pairs; notes: what the
    columns mean, and what is not in them; pairs: the ranked entries pair by pair, None where there are none."""

    table: Table
    rows: tuple[Row, ...]
    ranked: int
    baseline: str
    detectable: Detectable | None
    notes: tuple[str, ...]
    pairs: Pairs | None = field(default=None, compare=False, repr=False)

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        table = self.table
        return {
            **{name: getattr(table, name) for name in ("benchmark", "title", "kind", "budget", "steps", "selection")},
            **{name: getattr(table, name) for name in ("metric", "better", "identity", "current")},
            "ranked": self.ranked,
            "baseline": self.baseline,
            "detectable": None if self.detectable is None else self.detectable.to_dict(),
            "rows": [row.record() for row in self.rows],
            "notes": list(self.notes),
        }


def make_table_view(
    table: Table,
    rows: Mapping[str, EntryRows],
    without: Mapping[str, str],
    attempts: Mapping[tuple[str, str], int],
    baseline: str = "",
    left_out: Mapping[str, str] | None = None,
) -> TableView:
    """The view of a table. `rows`: the row scores of its entries, and `without` the reasons of those that have none
    here; `attempts`: how many entries each (`identify_team`, identity) had scored; `baseline`: the name of the model
    that the others are compared with, where the table has it; `left_out`: the entries that are left out of the rank
    sets, each with why, nothing by default."""
    left_out = left_out or {}
    order = [standing.entry for standing in table.rows if standing.entry not in left_out]
    ranking = rank_entries(table.identity, table.better, rows, order)
    lacking = {**left_out, **without, **ranking.left_out}
    base = next(
        (
            scored_entry.entry
            for scored_entry in table.rows
            if scored_entry.score.model == baseline and scored_entry.entry in ranking.places
        ),
        "",
    )
    comparisons = compare_with_baseline(ranking, base, table.better, rows) if base else {}
    named = (scored_entry for scored_entry in table.rows if scored_entry.team or scored_entry.team_key)
    tried: dict[str, int | None] = dict.fromkeys(order) | {
        scored_entry.entry: attempts.get((identify_team(scored_entry), table.identity)) for scored_entry in named
    }
    optimism_by_entry = _compute_team_optimism(table, ranking, tried)
    learnt = _compute_id_threshold(table, rows)
    view_rows = []
    for standing in table.rows:
        view_rows.append(
            Row(
                **vars(ranking.places.get(standing.entry, Placement())),
                standing=standing,
                unranked="" if standing.entry in ranking.places else lacking.get(standing.entry, ""),
                not_learnt="" if learnt is None else learnt.reason(standing.score),
                against=comparisons.get(standing.entry),
                worst=rows[standing.entry].worst if standing.entry in rows else None,
                attempts=tried.get(standing.entry),
                optimism=optimism_by_entry.get(standing.entry),
                declared=rows[standing.entry].declared if standing.entry in rows else (),
                card=rows[standing.entry].card if standing.entry in rows else {},
            )
        )
    detectable = measure_detectable({entry: rows[entry].ood for entry in ranking.places})
    notes = _make_notes(table, ranking, view_rows, base and baseline, detectable, optimism_by_entry)
    return TableView(table, tuple(view_rows), len(ranking.places), base and baseline, detectable, notes, ranking.pairs)


def _compute_id_threshold(table: Table, rows: Mapping[str, EntryRows]) -> TrainedCheck | None:
    """What ID score the entries of a table are held to."""
    floors = (rows[standing.entry].floor for standing in table.rows if standing.entry in rows)
    return TrainedCheck.of(floors, (standing.score.id.value for standing in table.rows), table.better)


def _compute_team_optimism(table: Table, ranking: RankedEntries, tried: Mapping[str, int | None]) -> dict[str, float]:
    """The optimism of each team's best entry, by entry."""
    teams: dict[str, list[str]] = {}
    for standing in table.rows:
        if standing.entry in ranking.places and (standing.team or standing.team_key):
            teams.setdefault(identify_team(standing), []).append(standing.entry)
    best = {entries[0]: compute_optimism(ranking, entries, tried[entries[0]] or 1) for entries in teams.values()}
    return {entry: value for entry, value in best.items() if value is not None}


def _make_notes(
    table: Table,
    ranking: RankedEntries,
    rows: Sequence[Row],
    baseline: str,
    detectable: Detectable | None,
    optimism_by_entry: Mapping[str, float],
) -> tuple[str, ...]:
    count = len(ranking.places)
    notes = []
    if count:
        notes.append(
            f"Rank sets: all {count} true ranks by OOD lie in their sets at once with 95 % confidence (max-t over all "
            "pairs, rows paired). Entries that share a letter do not differ significantly."
        )
        notes.append(
            "Behind the first: intervals that hold for all pairs at once. Best: how many draws an entry leads."
        )
    notes.append("Brackets are 95 % t intervals over test rows and training seeds.")
    if any(table_row.worst for table_row in rows):
        notes.append("Worst group: its interval knows that it was picked for being the worst.")
    if detectable is not None:
        scale, unit = (100, " points") if list(table.rows[0].score.bounds or ()) == [0, 1] else (1, "")
        notes.append(
            f"A difference under about {scale * detectable.value:.2g}{unit} is seldom found: the minimum detectable "
            "difference of the median pair at 80 % power."
        )
    if baseline:
        notes.append(f"Against {baseline}: two-sided t tests, p adjusted by Holm for all entries.")
    if optimism_by_entry:
        notes.append(
            "Attempts: how many entries of the team were scored here; in brackets how far the best of so many equal "
            "ones is expected above the truth."
        )
    if any(row.not_learnt for row in rows):
        notes.append(
            f"{MARK}: a seed is no better on ID than a constant answer, or not half way from there to the best ID "
            "score while the shift costs the entry something. Its OOD score says nothing of the shift."
        )
    single = sum(len(row.score.seeds) == 1 for row in table.rows)
    if single and count:
        notes.append(f"{single} of the entries have a single seed: training noise is not in their intervals or ranks.")
    unranked = {row.standing.entry: row.unranked for row in rows if row.unranked}
    for why in sorted(set(unranked.values())):
        models = sorted(row.score.model for row in table.rows if unranked.get(row.entry) == why)
        notes.append(f"No rank set for {', '.join(models)}: {why}.")
    return tuple(notes)
