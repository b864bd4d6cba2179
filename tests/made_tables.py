"""Tables made up from drawn row scores: everything between a board and its pages, without a board."""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256

import numpy as np
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.statistics.interval import estimate_gap, estimate_mean
from farshift.benchmarks.statistics.sample import RowScores
from farshift.leaderboard.entries import ScoredEntry
from farshift.leaderboard.ledger import Record
from farshift.leaderboard.tables.entry_rows import EntryRows
from farshift.leaderboard.tables.snapshot import Snapshot, make_suite_tables
from farshift.leaderboard.tables.table import group_entries, make_table
from farshift.leaderboard.teams import make_team_identity as team_identity
from records import record

ROWS = 600


def rows(share: float, name: str, count: int = ROWS, seeds: int = 3, clusters=None, shared: float = 0.6) -> RowScores:
    """Right and wrong rows, `share` of them right; how hard a row is (`shared` of it) is the same for every entry."""
    hard = np.random.default_rng(count).random(count)
    own = np.random.default_rng([*name.encode()]).random((seeds, count))
    scores = (shared * hard + (1 - shared) * own < np.quantile(shared * hard + (1 - shared) * own, share)).astype(float)
    return RowScores(scores, (0.0, 1.0), clusters)


def entry(
    model: str, share: float, benchmark: str = "scan/length", team: str = "us", seeds: int = 3, made: int = 0, **said
) -> tuple[ScoredEntry, EntryRows]:
    """An entry whose OOD score is about `share`, and its ID score somewhat above."""
    on_id = rows(min(1.0, share + 0.2), f"{model}/id", seeds=seeds)
    on_ood = rows(share, f"{model}/ood/{benchmark}", seeds=seeds)
    score = record(model, benchmark, id=0.9, ood=share, seeds=seeds, **said)
    values = {"id": estimate_mean(on_id), "ood": estimate_mean(on_ood)}
    identity = find_benchmark(benchmark).identity(score.budget, score.steps, score.selection)
    score = replace(
        score, **values, gap=estimate_gap(on_id, on_ood), views=values, entry_identity=said.get("identity", identity)
    ).rounded()
    name = sha256(f"{model} {benchmark} {team}".encode()).hexdigest()[:16]
    time = f"2026-01-{1 + made % 28:02d}T00:00:00Z"
    run = {key: getattr(score, key) for key in ("benchmark", "model", "budget", "steps", "selection")}
    who = {"submission": name * 4, "name": "", "team": team, "note": "", "time": time}
    return ScoredEntry(entry=name, run=0, run_digest=name * 4, **run, **who, score=score), EntryRows(on_id, on_ood)


def snapshot(
    entries, attempts=None, baseline: str = "", name: str = "A board", apart=(), windows=(), unranked=()
) -> Snapshot:
    """The tables of some entries, as a board's. unranked: the models that are not ranked."""
    standings = [standing for standing, _ in entries]
    left_out = {standing.entry: "its seeds" for standing in standings if standing.model in unranked}
    by_name = {standing.entry: result for standing, result in entries}
    assert len(by_name) == len(entries), "two entries of one name"
    tried = {(team_identity(team, ""), table): count for (team, table), count in (attempts or {}).items()}
    views = tuple(make_table(table, by_name, {}, tried, baseline, left_out) for table in group_entries(standings))
    head = Record(len(entries), "2026-02-01T00:00:00Z", "scored", {}, "0" * 64, "1" * 64, "2" * 128)
    suites = make_suite_tables(views, {name: result.ood for name, result in by_name.items()})
    return Snapshot(name, "2026-01-01T00:00:00Z", head, views, tuple(apart), suites, tuple(windows), len(entries))
