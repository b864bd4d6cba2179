"""The home page: the leaders on each kind of shift, a chart of all models, and a searchable table of them.

A row of the table is a team's model under one protocol. For a kind of shift with one benchmark it shows the entry's row
of that table. For a kind with several it shows on how many of them the model can be first (its rank set contains 1)
and, for a model with entries on all of them, the mean of the normalised scores (0 is chance, 1 the best possible). The
interval of the mean assumes that the benchmarks have independent rows and seeds, and is cut at the best and the worst
possible mean:

    half = sqrt(sum over benchmarks of half_k^2) / benchmarks

A model that lacks an entry on a benchmark has no mean, because the other benchmarks may be the easy ones. A model that
has not learnt a task, or repeats a training answer whatever is asked, never leads: its OOD score does not measure the
shift.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import Any

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...benchmarks.scoring.record import Score
from ...benchmarks.scoring.score import make_scale
from ...benchmarks.statistics.aggregate import Scale
from ...benchmarks.statistics.interval import Estimate, Interval
from ...splits.manifest import KINDS
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table
from ..teams import identify_team
from ..validation.card import UNKNOWN
from .benchmarks import WHAT, classify_inputs
from .display import SHARE, format_score
from .entries import is_naive, make_model_path
from .page import Page
from .svg import Figure, Plot

PUBLISHED = "as published"
"""The protocol of a table that has the published settings."""

MOST = 200
"""Maximum number of models in the chart."""


def list_pages(board: Snapshot) -> Iterator[Page]:
    """Yield the home page."""
    yield Page("index.html", "index.html", lambda: _make_context(board))


def _make_context(board: Snapshot) -> dict[str, Any]:
    rows = make_home_rows(board)
    counts = {kind: sum(kind in row.cells for row in rows) for kind in KINDS}
    columns = {kind: count for kind, count in counts.items() if count}
    return {
        "rows": rows,
        "columns": columns,
        "leads": [_find_lead(kind, rows) for kind in KINDS],
        "chart": _draw_models(rows),
        "fields": sorted({name for row in rows for name in row.fields}),
        "budgets": sorted({row.budget for row in rows}),
        "protocols": sorted({row.protocol for row in rows}),
    }


@dataclass(frozen=True)
class Cell:
    """A model on one kind of shift. has, of: number of the kind's benchmarks on which it has entries, and number under
    its protocol; first: number on which it can be first; leads: those of them whose task it has learnt; unlearnt:
    number on which its ID score is below the threshold. best: its row of the only table, with `view`; means: ood, id
    and gap over several tables; point: the mean normalised ID and OOD score over the benchmarks that it has, None if
    their metrics have no chance level."""

    has: int
    of: int
    first: int
    leads: int
    unlearnt: int
    best: Row | None = None
    view: Table | None = None
    means: Mapping[str, Interval] = field(default_factory=dict)
    point: tuple[float, float] | None = None


@dataclass(frozen=True)
class ModelRow:
    """A model of a team under one protocol. path: its page; budget, protocol: those of its tables; fields: data types
    of the sources of its entries; extra, pretraining: other training data according to its card, as `none`, `declared`
    or `unknown`; parameters: as stated in the card, or None; naive: whether it has learnt none of its tasks."""

    model: str
    team: str
    path: str
    budget: str
    protocol: str
    cells: Mapping[str, Cell]
    fields: Sequence[str]
    extra: str
    pretraining: str
    parameters: int | None
    naive: bool

    @property
    def sort_key(self) -> tuple[int | str, ...]:
        """Sort key: models that have learnt first; by the number of benchmarks on which it leads, by entries, then by
        name."""
        leads, has = (sum(getattr(cell, name) for cell in self.cells.values()) for name in ("leads", "has"))
        return self.naive, -leads, -has, self.model, self.team, self.protocol, self.budget


Entries = dict[str, tuple[Table, Row]]
"""The entry of a model in each table, by the table's identity."""


def make_home_rows(snapshot: Snapshot) -> list[ModelRow]:
    """Return the rows of the table, sorted."""
    known = load_benchmarks()
    tables: dict[tuple[str, str], dict[str, list[Table]]] = {}
    models: dict[tuple[str, str, str, str], Entries] = {}
    for view in snapshot.views:
        if not view.current:
            continue
        protocol = view.budget, _describe_protocol(view, known[view.benchmark])
        tables.setdefault(protocol, {}).setdefault(view.kind, []).append(view)
        for row in view.rows:
            model = identify_team(row.standing), str(row.standing.score.model), *protocol
            entries = models.setdefault(model, {})
            before = entries.get(view.identity)
            if before is None or _get_preference(row) > _get_preference(before[1]):
                entries[view.identity] = view, row
    current = {view.benchmark: known[view.benchmark] for view in snapshot.views if view.current}
    scales = {name: make_scale(benchmark) for name, benchmark in current.items()}
    fields = {name: classify_inputs(benchmark) for name, benchmark in current.items()}
    rows = [_make_row(model[2:], entries, tables[model[2:]], scales, fields) for model, entries in models.items()]
    return sorted(rows, key=lambda row: row.sort_key)


def _describe_protocol(table: Table, benchmark: Benchmark) -> str:
    """Return a table's protocol apart from its budget: "as published", or the settings that differ."""
    if table.steps is None and table.selection == benchmark.rule(None).name:
        return PUBLISHED
    return ", ".join([*([] if table.steps is None else [f"{table.steps} steps"]), f"chosen by {table.selection}"])


def _get_preference(row: Row) -> tuple[bool, str, str]:
    """Sort key of entries of the same name: one that has a rank set, else the newer one."""
    return row.rank is not None, row.standing.time, row.standing.entry


Scales = Mapping[str, Scale | None]
"""The chance score of each benchmark and its distance from the best possible one; None if it has no chance level."""


def _make_row(
    protocol: tuple[str, str],
    entries: Entries,
    kinds: Mapping[str, Sequence[Table]],
    scales: Scales,
    fields: Mapping[str, str],
) -> ModelRow:
    newest = max((row for _, row in entries.values()), key=lambda row: (row.standing.time, row.standing.entry))
    cells = {}
    for kind in KINDS:
        if any(view.identity in entries for view in kinds.get(kind, ())):
            cells[kind] = _make_cell(kinds[kind], entries, scales)
    return ModelRow(
        model=str(newest.standing.score.model),
        team=newest.standing.team,
        path=make_model_path(newest.standing),
        budget=protocol[0],
        protocol=protocol[1],
        cells=cells,
        fields=sorted({fields[view.benchmark] for view, _ in entries.values()}),
        extra=_summarise_declaration(newest, "training_data"),
        pretraining=_summarise_declaration(newest, "pretraining"),
        parameters=newest.card.get("parameters"),
        naive=all(is_naive(row) for _, row in entries.values()),
    )


def _summarise_declaration(row: Row, name: str) -> str:
    """Return what a card declares about other training data."""
    names = list(row.card.get("declared", {}).get(name, (UNKNOWN,)))
    return UNKNOWN if names == [UNKNOWN] else "declared" if names else "none"


def _make_cell(tables: Sequence[Table], entries: Entries, scales: Scales) -> Cell:
    rows = [entries[view.identity][1] if view.identity in entries else None for view in tables]
    known = [row for row in rows if row is not None]
    first = [row for row in known if row.rank is not None and row.rank[0] == 1]
    counts = len(known), len(tables), len(first), sum(not is_naive(row) for row in first)
    unlearnt = sum(bool(row.not_learnt) for row in known)
    chosen = [(row, scales[view.benchmark]) for view, row in zip(tables, rows, strict=True)]
    scored = [(row.standing.score, scale) for row, scale in chosen if row is not None and scale is not None]
    means = {name: _compute_mean(name, scored) for name in ("ood", "id", "gap")} if scored else {}
    point = (means["id"].value, means["ood"].value) if means else None
    if len(tables) == 1:
        return Cell(*counts, unlearnt, known[0], tables[0], point=point)
    complete = all(row is not None or scale is None for row, scale in chosen)
    return Cell(*counts, unlearnt, means=means if complete else {}, point=point)


def _compute_mean(name: str, scores: Sequence[tuple[Score, Scale]]) -> Interval:
    """Return the mean of the normalised ID or OOD scores or gaps."""
    values, squares, least, most = [], [], 0.0, 0.0
    for score, scale in scores:
        estimate: Estimate = getattr(score, name)
        chance = 0.0 if name == "gap" else scale.chance
        values.append((estimate.value - chance) / scale.span)
        squares.append(((estimate.high - estimate.low) / 2 / scale.span) ** 2)
        low, high = score.bounds or (float("-inf"), float("inf"))
        ends = (low - high, high - low) if name == "gap" else (low - chance, high - chance)
        least += min(end / scale.span for end in ends)
        most += max(end / scale.span for end in ends)
    count = len(values)
    value, half = sum(values) / count, sqrt(sum(squares)) / count
    return Interval(value, max(value - half, least / count), min(value + half, most / count))


def _draw_models(rows: Sequence[ModelRow]) -> Figure | None:
    """Return OOD against ID, a point for each model and kind of shift; None for fewer than two points."""
    models = [row for row in rows if any(cell.point for cell in row.cells.values())]
    points = [(row, kind, cell.point) for row in models[:MOST] for kind, cell in row.cells.items() if cell.point]
    if len(points) < 2:
        return None
    plot = Plot((0.0, 1.0), (0.0, 1.0), width=640, height=420)
    plot.draw_axes(("ID score", "OOD score"), plot.x.ticks(5, 100), plot.y.ticks(5, 100))
    plot.draw_line("equal", (0.0, 0.0), (1.0, 1.0))
    data = []
    for row, kind, point in points:
        numbers = [format_score(value, SHARE) for value in point]
        tooltip = f"{row.model}, {kind}: ID {numbers[0]}, OOD {numbers[1]}"
        plot.draw_marker(KINDS.index(kind), *point, tooltip, hollow=row.naive)
        data.append((row.model, row.team, row.budget, kind, *numbers))
    caption = (
        "Each point is a model on one kind of shift: its mean score over that kind's benchmarks, where 0 is chance "
        "(lower scores are drawn there) and 100 the best possible. On the dashed line nothing is lost under the shift; "
        "the further below it, the more. Hollow: models that have not learnt their tasks, such as constant answers."
    )
    if len(models) > MOST:
        caption += f" The first {MOST} of {len(models)} models are drawn."
    present = {kind for _, kind, _ in points}
    series = [(number, kind) for number, kind in enumerate(KINDS) if kind in present]
    head = ("model", "team", "budget", "kind of shift", "ID", "OOD")
    return plot.finish("OOD against ID", caption, head, data, series, "OOD score against ID score of all models")


@dataclass(frozen=True)
class Lead:
    """The leaders of a kind of shift, under the protocol with the most entries. benchmarks, models: their numbers;
    most: the number of benchmarks on which a leader can be first; naive: the number of models that can be first there,
    but have not learnt the task; significant: whether one model is significantly ahead of all others on every benchmark
    of the kind."""

    kind: str
    what: str
    protocol: str = ""
    benchmarks: int = 0
    models: int = 0
    leaders: Sequence[ModelRow] = ()
    most: int = 0
    naive: int = 0
    significant: bool = False


def _find_lead(kind: str, rows: Sequence[ModelRow]) -> Lead:
    protocols: dict[tuple[str, str], list[ModelRow]] = {}
    for row in rows:
        if kind in row.cells:
            protocols.setdefault((row.budget, row.protocol), []).append(row)
    if not protocols:
        return Lead(kind, WHAT[kind])

    def rate(protocol: tuple[str, str]) -> tuple[bool, int, bool, tuple[str, str]]:
        """The published protocol first, then the one with the most entries, then the full budget."""
        entries = sum(row.cells[kind].has for row in protocols[protocol])
        return protocol[1] == PUBLISHED, entries, protocol[0] == "full", protocol

    budget, protocol = max(protocols, key=rate)
    models = protocols[budget, protocol]
    cells = [row.cells[kind] for row in models]
    most, of = max(cell.leads for cell in cells), cells[0].of
    leaders = [row for row, cell in zip(models, cells, strict=True) if cell.leads == most and most]
    return Lead(
        kind,
        WHAT[kind],
        f"{budget} budget" + ("" if protocol == PUBLISHED else f", {protocol}"),
        of,
        len(models),
        leaders,
        most,
        sum(cell.first > cell.leads for cell in cells),
        significant=len(models) > 1 and len(leaders) == 1 and most == of == sum(cell.first for cell in cells),
    )
