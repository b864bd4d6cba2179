"""Tables: entries grouped by identity (manifest, protocol, scorer), and the statistics of each group, for pages and
exports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...benchmarks.scoring.record import Score
from ...benchmarks.scoring.trained_check import MARK, TrainedCheck
from ...benchmarks.statistics.detectable import Detectable, measure_detectable
from ...benchmarks.statistics.ranks import Better
from ...core.errors import FarshiftError
from ...splits.manifest import KINDS
from ..entries import Entry, ScoredEntry
from .entry_rows import EntryRows
from .ranking import ONE_A_TEAM, Pairs, Ranking, compare_with_baseline, compute_optimism, rank_entries


@dataclass(frozen=True, kw_only=True)
class Row:
    """An entry in its table.

    rank: the lowest and the highest rank in its confidence set; ties: the letters of its tie groups; best: the share of
    draws in which it is first; behind: its score minus that of the table's first entry (`Pairs`), None for the first
    itself; all are empty for an entry without a rank set. unranked: why it is not one of the ranked entries
    (ranking.py) or has no rank set for another reason; empty if it has one; not_learnt: why its ID score is marked as
    low, so that its OOD score does not measure the shift; empty if it has learned the task
    (benchmarks/scoring/trained_check.py); against: its score minus the baseline's, with p_holm and verdict; worst: its
    worst group, with a selection-adjusted interval; attempts: how many entries of its team were scored in this table,
    None without a team; optimism: on the team's best entry, the expected selection bias; declared: the training data
    that its model card declares, compared with the benchmark; card: the content of its run and model cards
    (entry_rows.py)."""

    standing: ScoredEntry
    rank: tuple[int, int] | None = None
    ties: str = ""
    best: float | None = None
    behind: dict[str, Any] | None = None
    unranked: str = ""
    not_learnt: str = ""
    against: dict[str, Any] | None = None
    worst: dict[str, Any] | None = None
    attempts: int | None = None
    optimism: float | None = None
    declared: tuple[dict[str, Any], ...] = ()
    card: Mapping[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return plain JSON."""
        standing, score = self.standing, self.standing.score
        return {
            "entry": standing.entry,
            "entered": standing.time,
            "model": score.model,
            "team": standing.team,
            "team_key": standing.team_key,
            "rank": None if self.rank is None else list(self.rank),
            "unranked": self.unranked,
            "not_learnt": self.not_learnt,
            "reference": standing.reference,
            "ties": self.ties,
            "best": self.best,
            # Sorted by key, as in a stored score.
            **{name: dict(sorted(getattr(score, name).to_dict().items())) for name in ("id", "ood", "gap")},
            "behind": self.behind,
            "against": self.against,
            "worst_group": self.worst,
            "seeds": len(score.seeds),
            "protocol_seeds": score.protocol_seeds,
            "attempts": self.attempts,
            "optimism": self.optimism,
            "declared": list(self.declared),
        }


@dataclass(frozen=True, kw_only=True)
class Table:
    """The entries of one identity, by OOD score, best first. The order is not a ranking: see the rank sets.

    current: whether this version of Farshift scores the identity; ranked: how many entries have a rank set; baseline:
    the model that the others are compared with, empty for none; detectable: the minimum detectable difference of its
    pairs; notes: what the columns mean, and what is not in them; pairs: the pairs of ranked entries, None if there are
    none."""

    benchmark: str
    title: str
    kind: str
    budget: str
    steps: int | None
    selection: str
    metric: str
    better: Better
    identity: str
    current: bool
    rows: tuple[Row, ...]
    ranked: int
    baseline: str = ""
    detectable: Detectable | None = None
    notes: tuple[str, ...] = ()
    pairs: Pairs | None = field(default=None, compare=False, repr=False)

    @property
    def protocol(self) -> str:
        """What distinguishes this table from others of its benchmark; empty for the protocol as published."""
        parts = [] if self.budget == "full" else [f"{self.budget} budget"]
        parts += [] if self.steps is None else [f"{self.steps} steps, set by hand"]
        parts += [] if self.selection == "last" else [f"candidates chosen by {self.selection}"]
        return ", ".join([*parts, *([] if self.current else [f"identity {self.identity[:8]}, not of this version"])])

    @property
    def heading(self) -> str:
        """The benchmark, and what distinguishes the table: `scan/length (quick budget)`."""
        return f"{self.benchmark} ({self.protocol})" if self.protocol else self.benchmark

    @property
    def anchor(self) -> str:
        """A name for the table that is safe in URLs and file names."""
        return f"{re.sub('[^a-z0-9]+', '-', self.benchmark.lower()).strip('-')}-{self.identity[:8]}"

    def record(self) -> dict[str, Any]:
        """Return plain JSON."""
        names = ("benchmark", "title", "kind", "budget", "steps", "selection", "metric", "better", "identity")
        return {
            **{name: getattr(self, name) for name in (*names, "current", "ranked", "baseline")},
            "detectable": None if self.detectable is None else self.detectable.to_dict(),
            "rows": [row.record() for row in self.rows],
            "notes": list(self.notes),
        }


def group_entries(standings: Sequence[ScoredEntry]) -> list[list[ScoredEntry]]:
    """The entries of each identity, best OOD score first, sorted by kind of shift, benchmark and budget."""
    grouped: dict[str, list[ScoredEntry]] = {}
    for standing in standings:
        grouped.setdefault(standing.score.entry_identity, []).append(standing)

    def sort_key(entries: list[ScoredEntry]) -> tuple[Any, ...]:
        score = entries[0].score
        return KINDS.index(score.kind), score.benchmark, score.budget, score.steps or 0, score.entry_identity

    def by_score(entry: ScoredEntry) -> tuple[Any, ...]:
        sign = -1 if entry.score.better == "higher" else 1
        return sign * entry.score.ood.value, entry.score.model, entry.entry

    return sorted((sorted(entries, key=by_score) for entries in grouped.values()), key=sort_key)


def make_table(
    standings: Sequence[ScoredEntry],
    rows: Mapping[str, EntryRows],
    without: Mapping[str, str],
    attempts: Mapping[tuple[str, str], int],
    baseline: str = "",
    left_out: Mapping[str, str] | None = None,
) -> Table:
    """Build the table of the entries of one identity, best first. `rows`: their row scores; `without`: the reason for
    each entry that has none here; `attempts`: how many entries each (team, identity) had scored; `baseline`:
    the model that the others are compared with, if the table has it; `left_out`: the entries that are not ranked, each
    with the reason, none by default."""
    left_out = left_out or {}
    first = standings[0].score
    better: Better = "lower" if first.better == "lower" else "higher"
    entries = [standing.entry for standing in standings]
    ranking = rank_entries(first.entry_identity, better, rows, [entry for entry in entries if entry not in left_out])
    reasons = {**left_out, **without, **ranking.left_out}
    # An entry of another team may have the same model name: references first.
    named = sorted((row for row in standings if row.score.model == baseline), key=lambda row: not row.reference)
    base = next((row.entry for row in named if row.entry in ranking.places), "")
    missing, baseline = ("", baseline) if base else (baseline, "")
    comparisons = compare_with_baseline(ranking, base, better, rows) if base else {}
    teams: dict[str, list[str]] = {}
    for standing in standings:
        if standing.team or standing.team_key:
            teams.setdefault(standing.team_identity, []).append(standing.entry)
    tried = {entry: attempts.get((team, first.entry_identity)) for team, members in teams.items() for entry in members}
    optimism = _compute_team_optimism(ranking, list(teams.values()), tried)
    floors = (rows[entry].floor for entry in entries if entry in rows)
    learnt = TrainedCheck.of(floors, (standing.score.id.value for standing in standings), better)
    view_rows = []
    for standing in standings:
        entry, entry_rows = standing.entry, rows.get(standing.entry)
        view_rows.append(
            Row(
                **ranking.places.get(entry, {}),
                standing=standing,
                unranked="" if entry in ranking.places else reasons.get(entry, ""),
                not_learnt="" if learnt is None else learnt.reason(standing.score),
                against=comparisons.get(entry),
                worst=None if entry_rows is None else entry_rows.worst,
                attempts=tried.get(entry),
                optimism=optimism.get(entry),
                declared=() if entry_rows is None else entry_rows.declared,
                card={} if entry_rows is None else entry_rows.card,
            )
        )
    detectable = measure_detectable({entry: rows[entry].ood for entry in ranking.places})
    known = load_benchmarks()
    return Table(
        **{name: getattr(first, name) for name in ("benchmark", "kind", "budget", "steps", "selection", "metric")},
        title=known[first.benchmark].definition.title if first.benchmark in known else first.benchmark,
        better=better,
        identity=first.entry_identity,
        current=not explain_outdated(known, first, first.entry_identity)[0],
        rows=tuple(view_rows),
        ranked=len(ranking.places),
        baseline=baseline,
        detectable=detectable,
        notes=_make_notes(view_rows, baseline, detectable, missing),
        pairs=ranking.pairs,
    )


def _compute_team_optimism(
    ranking: Ranking, teams: Sequence[Sequence[str]], tried: Mapping[str, int | None]
) -> dict[str, float]:
    """The optimism of each team's best ranked entry, by entry. teams: the entries of each, best first."""
    optimism = {}
    for members in teams:
        ranked = [entry for entry in members if entry in ranking.places]
        value = compute_optimism(ranking, ranked, tried[ranked[0]] or 1) if ranked else None
        if value is not None:
            optimism[ranked[0]] = value
    return optimism


def _make_notes(
    rows: Sequence[Row], baseline: str, detectable: Detectable | None, missing: str = ""
) -> tuple[str, ...]:
    """What the columns mean, and what is not in them. missing: the baseline, if it is not ranked here."""
    count = sum(row.rank is not None for row in rows)
    notes = []
    if count > 1:
        notes.append(
            f"Rank sets: all {count} true OOD ranks are in their sets simultaneously with 95 % confidence (max-t over "
            "all pairs, rows paired). Entries that share a letter do not differ significantly."
        )
        notes.append("Behind the first: intervals that hold for all pairs simultaneously.")
        notes.append("Best: the share of draws in which an entry is first.")
    notes.append("Brackets are 95 % t intervals over test rows and training seeds.")
    if any(row.worst for row in rows):
        notes.append("Worst group: its interval is adjusted for the selection of the worst group.")
    if detectable is not None:
        scale, unit = (100, " points") if list(rows[0].standing.score.bounds or ()) == [0, 1] else (1, "")
        notes.append(
            f"The minimum detectable difference is about {scale * detectable.value:.2g}{unit} (the median pair, at "
            "80 % power): smaller differences are seldom found."
        )
    if baseline:
        notes.append(f"Against {baseline}: two-sided t tests, p-values adjusted by Holm for all entries.")
    if missing:
        notes.append(f"No entry is compared with {missing}: it has no ranked entry in this table.")
    if any(row.optimism is not None for row in rows):
        notes.append(
            "Attempts: how many entries of the team were scored here; in brackets the expected excess over the true "
            "score of the best of that many equally good entries."
        )
    if any(row.not_learnt for row in rows):
        notes.append(
            f"{MARK}: a seed is no better on ID than a constant prediction, or less than half way from there to the "
            "best ID score while the shift lowers the entry's score. Its OOD score does not measure the shift."
        )
    scores = [row.standing.score for row in rows]
    single = sum(len(score.seeds) == 1 and not score.deterministic for score in scores)
    if single and count:
        notes.append(f"{single} of the entries have a single seed: their intervals and ranks leave out training noise.")
    if exact := sorted(score.model for score in scores if score.deterministic):
        notes.append(f"Declared deterministic, so that there is no training noise: {', '.join(exact)}.")
    models: dict[str, list[str]] = {}
    for row in rows:
        if row.unranked:
            models.setdefault(row.unranked, []).append(row.standing.score.model)
    notes += [f"No rank set for {', '.join(sorted(models[why]))}: {why}." for why in sorted(models)]
    if any(why.startswith(ONE_A_TEAM) for why in models):
        notes.append(
            "A public board ranks one entry per team. A board of kind experiments (farshift board init DIR --kind "
            "experiments) ranks all; entries marked by farshift submit --reference are always ranked."
        )
    return tuple(notes)


OWN = "if it is your own, set FARSHIFT_PATH to the folder that defines it"


def explain_outdated(known: Mapping[str, Benchmark], of: Entry | Score, identity: str) -> tuple[str, int | None]:
    """Why this version of Farshift does not score the identity of an entry, or of its score; empty if it does. Also the
    version of the scorer that the identity belongs to, if that is all that is older."""
    if of.benchmark not in known:
        return f"benchmark {of.benchmark} is not defined here ({OWN})", None
    benchmark, protocol = known[of.benchmark], (of.budget, of.steps, of.selection)
    try:
        if benchmark.identity(*protocol) == identity:
            return "", None
        scorer = benchmark.made_under(identity, *protocol)
    except FarshiftError as error:  # its split or selection rule is unknown here
        return f"{error} ({OWN})", None
    if scorer is None:
        return "it has an older identity, which this version does not score", None
    return f"scored by scorer {scorer}: run farshift board rescore for this version's", scorer
