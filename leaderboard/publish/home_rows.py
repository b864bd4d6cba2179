"""The rows of the home page: a team's model under one protocol, with its scores on each kind of shift.

A kind with one benchmark shows the entry's row of that table. A kind with several benchmarks shows on how many of them
the model can be first (its rank set contains 1) and, for a model with entries on all of them, the mean of the
normalised scores (0 is chance, 1 the best possible). Its interval assumes that the benchmarks have independent rows and
seeds:

    half = sqrt(sum over benchmarks of half_k^2) / benchmarks

A model that lacks an entry on a benchmark has no mean, because the other benchmarks may be the easy ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...benchmarks.scoring.chance import make_scale
from ...benchmarks.scoring.record import Score
from ...benchmarks.statistics.interval import Estimate, Interval
from ...splits.manifest import KINDS
from ..tables.snapshot import Snapshot
from ..tables.standings import Table
from ..tables.table_view import Row, TableView
from ..teams import identify_team
from ..validation.card import UNKNOWN
from .figures.severity import draw_outline, draw_sparkline, list_severity_shares
from .page_graphics import split_letters
from .source_fields import classify_benchmarks

VIEWS = ("ood", "id", "gap")


@dataclass(frozen=True)
class Cell:
    """A model on one kind of shift. has, of: number of the kind's benchmarks on which it has entries, and number under
    its protocol; first: number on which it can be first; unlearnt: number on which its ID score is below the threshold.
    best: its row of the only table, with `view`; means: ood, id and gap over several tables; spark: its severity curve
    as a path; bars: its rank sets as a path, one bar per benchmark."""

    kind: str
    has: int
    of: int
    first: int
    unlearnt: int
    best: Row | None = None
    view: TableView | None = None
    means: Mapping[str, Interval] = field(default_factory=dict)
    spark: str = ""
    bars: str = ""

    @property
    def value(self) -> float | None:
        """The sort key of the column, higher is better; None if there is none."""
        if self.best is not None:
            score = self.best.standing.score
            return score.ood.value if score.better == "higher" else -score.ood.value
        return self.means["ood"].value if self.means else None

    @property
    def ties(self) -> str:
        """The letters of the tie groups, or only the first and the last if there are many."""
        letters = split_letters(self.best.ties) if self.best is not None else []
        return "".join(letters) if len(letters) <= 3 else f"{letters[0]}–{letters[-1]}"


@dataclass(frozen=True)
class ModelRow:
    """A model of a team under one protocol. entry: its newest entry; budget, protocol: those of its tables; fields:
    data types of the sources of its entries; extra, pretraining: other training data according to its card, as `none`,
    `declared` or `unknown`; parameters: as stated in the card, or None."""

    model: str
    team: str
    entry: str
    budget: str
    protocol: str
    cells: Mapping[str, Cell]
    fields: tuple[str, ...]
    extra: str
    pretraining: str
    parameters: int | None

    @property
    def first(self) -> int:
        """Number of benchmarks on which it can be first."""
        return sum(cell.first for cell in self.cells.values())

    @property
    def has(self) -> int:
        return sum(cell.has for cell in self.cells.values())


Key = tuple[str, str, str, str]


def make_home_rows(snapshot: Snapshot) -> list[ModelRow]:
    """Return the rows, sorted by the number of benchmarks on which they can be first, by entries, then by name."""
    groups: dict[tuple[str, str], dict[str, list[TableView]]] = {}
    teams: dict[tuple[str, str], str] = {}
    known = load_benchmarks()
    info = _BenchmarkInfo(
        {
            name: find_chance_and_span(known[name])
            for name in {item.table.benchmark for item in snapshot.views} & set(known)
        },
        classify_benchmarks({item.table.benchmark for item in snapshot.views}),
    )
    entries_by_key: dict[Key, dict[str, tuple[TableView, Row]]] = {}
    for view in snapshot.views:
        if not view.table.current:
            continue
        budget, protocol = view.table.budget, describe_protocol(view.table, known[view.table.benchmark])
        groups.setdefault((budget, protocol), {}).setdefault(view.table.kind, []).append(view)
        for row in view.rows:
            label = (row.standing.team, row.standing.team_key)
            if label not in teams:
                teams[label] = identify_team(row.standing)
            key = (teams[label], str(row.standing.score.model), budget, protocol)
            own_entries = entries_by_key.setdefault(key, {})
            if view.table.identity not in own_entries or _is_preferred(row, own_entries[view.table.identity][1]):
                own_entries[view.table.identity] = (view, row)
    rows = [_make_row(key, own_entries, groups[key[2:4]], info) for key, own_entries in entries_by_key.items()]
    return sorted(rows, key=lambda item: (-item.first, -item.has, item.model, item.team, item.protocol, item.budget))


@dataclass(frozen=True)
class _BenchmarkInfo:
    """Return the scales and data types of the benchmarks, by name."""

    scales: Mapping[str, tuple[float, float] | None]
    fields: Mapping[str, str]


def describe_protocol(table: Table, benchmark: Benchmark) -> str:
    """Return a table's protocol apart from its budget: "as published", or the settings that differ."""
    if table.steps is None and table.selection == benchmark.rule(None).name:
        return "as published"
    parts = [] if table.steps is None else [f"{table.steps} steps"]
    return ", ".join([*parts, f"chosen by {table.selection}"])


def _is_preferred(row: Row, other: Row) -> bool:
    """Return the one of two entries of the same name that has a rank set, else the newer one."""
    return (row.rank is not None, row.standing.time, row.standing.entry) > (
        other.rank is not None,
        other.standing.time,
        other.standing.entry,
    )


def _make_row(
    key: Key,
    entries: Mapping[str, tuple[TableView, Row]],
    kinds: Mapping[str, Sequence[TableView]],
    info: _BenchmarkInfo,
) -> ModelRow:
    rows = [row for _, row in entries.values()]
    newest = max(rows, key=lambda row: (row.standing.time, row.standing.entry))
    card = newest.card
    extra, pretraining = (_summarise_declaration(newest, name) for name in ("training_data", "pretraining"))
    cells = {}
    for kind in KINDS:
        kind_entries = [
            (view, entries[view.table.identity][1]) for view in kinds.get(kind, ()) if view.table.identity in entries
        ]
        if kind_entries:
            cells[kind] = _make_cell(kind, kind_entries, kinds[kind], info)
    return ModelRow(
        model=str(newest.standing.score.model),
        team=newest.standing.team,
        entry=newest.standing.entry,
        budget=key[2],
        protocol=key[3],
        cells=cells,
        fields=tuple(sorted({info.fields[view.table.benchmark] for view, _ in entries.values()})),
        extra=extra,
        pretraining=pretraining,
        parameters=card.get("parameters"),
    )


def _summarise_declaration(row: Row, name: str) -> str:
    """Return what a card declares about other training data."""
    names = list(row.card.get("declared", {}).get(name, (UNKNOWN,)))
    return UNKNOWN if names == [UNKNOWN] else "declared" if names else "none"


def _make_cell(
    kind: str, kind_entries: Sequence[tuple[TableView, Row]], tables: Sequence[TableView], info: _BenchmarkInfo
) -> Cell:
    first = sum(row.rank is not None and row.rank[0] == 1 for _, row in kind_entries)
    unlearnt = sum(bool(row.not_learnt) for _, row in kind_entries)
    if len(tables) == 1:
        view, row = kind_entries[0]
        return Cell(kind, 1, 1, first, unlearnt, row, view, spark=draw_sparkline(row.standing.score))
    row_by_table = dict((view.table.identity, row) for view, row in kind_entries)
    means = _compute_means([(view, row_by_table.get(view.table.identity)) for view in tables], info)
    curves = [curve for _, row in kind_entries if (curve := _sample_curve(row.standing.score))]
    spark = draw_outline([sum(at) / len(curves) for at in zip(*curves, strict=True)]) if curves else ""
    return Cell(
        kind,
        len(kind_entries),
        len(tables),
        first,
        unlearnt,
        means=means,
        spark=spark,
        bars=_draw_rank_bars(tables, row_by_table),
    )


def _compute_means(tables: Sequence[tuple[TableView, Row | None]], info: _BenchmarkInfo) -> dict[str, Interval]:
    """Return the means of normalised scores over the tables whose metric has a chance level; empty for a model that
    lacks an entry in one of them."""
    spans: list[tuple[float, float, Score]] = []
    for view, row in tables:
        level = info.scales[view.table.benchmark]
        if level is None:
            continue
        if row is None:
            return {}
        spans.append((*level, row.standing.score))
    if not spans:
        return {}
    return {name: _compute_mean(name, spans) for name in VIEWS}


def _compute_mean(name: str, spans: Sequence[tuple[float, float, Score]]) -> Interval:
    values, squares = [], []
    for level, span, score in spans:
        estimate: Estimate = getattr(score, name)
        values.append((estimate.value - (0.0 if name == "gap" else level)) / span)
        squares.append(((estimate.high - estimate.low) / 2 / span) ** 2)
    value, half = sum(values) / len(values), sqrt(sum(squares)) / len(values)
    return Interval(value, value - half, value + half)


def find_chance_and_span(benchmark: Benchmark) -> tuple[float, float] | None:
    """Return a benchmark's chance score, and the distance from it to the best possible score; None if the metric has no
    chance level."""
    chance_scale = make_scale(benchmark)
    return None if chance_scale is None else (chance_scale.chance, chance_scale.span)


_AT = 7


def _sample_curve(score: Score) -> list[float]:
    """Return a severity curve at `_AT` steps from the least to the most severe rows; empty if there is none to draw."""
    values = list_severity_shares(score)
    last = len(values) - 1
    return [values[round(k * last / (_AT - 1))] for k in range(_AT)] if values else []


def _draw_rank_bars(tables: Sequence[TableView], row_by_table: Mapping[str, Row]) -> str:
    """Return rank sets as bars, 16 high and 5 apart, with rank 1 at the top. A benchmark without a rank set has an
    empty position."""
    segments = []
    for k, view in enumerate(tables):
        row = row_by_table.get(view.table.identity)
        if row is None or row.rank is None:
            continue
        low, high = row.rank
        step = 16 / max(view.ranked, 1)
        top = round((low - 1) * step)
        segments.append(f"M{5 * k + 2} {top}v{max(1, round(high * step) - top)}")
    return "".join(segments)
