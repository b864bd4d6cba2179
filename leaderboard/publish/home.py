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
from typing import Any

import numpy as np

from ...benchmarks.benchmark import Benchmark, load_benchmarks
from ...benchmarks.scoring.record import Score
from ...benchmarks.scoring.score import make_scale
from ...benchmarks.statistics.aggregate import Scale
from ...benchmarks.statistics.interval import Interval
from ...splits.manifest import KINDS
from ..tables.snapshot import Snapshot
from ..tables.table import Row, Table
from .benchmarks import WHAT
from .entries import is_naive, make_model_path
from .page import SHARE, Page, format_score
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
    counts = {kind: sum(kind in row["cells"] for row in rows) for kind in KINDS}
    return {
        "rows": rows,
        "columns": {kind: count for kind, count in counts.items() if count},
        "leads": [_find_lead(kind, rows) for kind in KINDS],
        "chart": _draw_models(rows),
        "budgets": sorted({row["budget"] for row in rows}),
        "protocols": sorted({row["protocol"] for row in rows}),
    }


def make_home_rows(snapshot: Snapshot) -> list[dict[str, Any]]:
    """Return the rows of the table: models that have learnt their tasks first; by the number of benchmarks on which
    they lead, by entries, then by name. A row has the model, its team, the path of its page, the budget and protocol of
    its tables, whether it is `naive` (has learnt none of its tasks), and a cell for each kind of shift."""
    known = load_benchmarks()
    tables: dict[tuple[str, str], dict[str, list[Table]]] = {}
    models: dict[tuple[str, str, tuple[str, str]], dict[str, Row]] = {}
    scales: dict[str, Scale | None] = {}
    for view in (view for view in snapshot.views if view.current):
        protocol = view.budget, _describe_protocol(view, known[view.benchmark])
        tables.setdefault(protocol, {}).setdefault(view.kind, []).append(view)
        scales[view.benchmark] = make_scale(known[view.benchmark])
        # Of entries of the same name, the newest of those that have a rank set.
        for row in sorted(view.rows, key=lambda row: (row.rank is not None, row.standing.time, row.standing.entry)):
            model = row.standing.team_identity, str(row.standing.score.model), protocol
            models.setdefault(model, {})[view.identity] = row
    rows = [_make_row(model[2], entries, tables[model[2]], scales) for model, entries in models.items()]

    def sort_key(row: dict[str, Any]) -> tuple[Any, ...]:
        leads, has = (sum(cell[name] for cell in row["cells"].values()) for name in ("leads", "has"))
        return row["naive"], -leads, -has, row["model"], row["team"], row["protocol"], row["budget"]

    return sorted(rows, key=sort_key)


def _describe_protocol(table: Table, benchmark: Benchmark) -> str:
    """Return a table's protocol apart from its budget: "as published", or the settings that differ."""
    if table.steps is None and table.selection == benchmark.rule(None).name:
        return PUBLISHED
    return ", ".join([*([] if table.steps is None else [f"{table.steps} steps"]), f"chosen by {table.selection}"])


def _make_row(
    protocol: tuple[str, str],
    entries: Mapping[str, Row],
    kinds: Mapping[str, Sequence[Table]],
    scales: Mapping[str, Scale | None],
) -> dict[str, Any]:
    """Return the row of a model. entries: its entry in each table, by the table's identity; scales: the chance score of
    each benchmark and its distance from the best possible one, None if it has no chance level."""
    newest = max(entries.values(), key=lambda row: (row.standing.time, row.standing.entry)).standing
    cells = {kind: _make_cell(kinds[kind], entries, scales) for kind in KINDS if kind in kinds}
    return {
        "model": str(newest.score.model),
        "team": newest.team,
        "path": make_model_path(newest),
        "budget": protocol[0],
        "protocol": protocol[1],
        "naive": all(map(is_naive, entries.values())),
        "cells": {kind: cell for kind, cell in cells.items() if cell["has"]},
    }


def _make_cell(
    tables: Sequence[Table], entries: Mapping[str, Row], scales: Mapping[str, Scale | None]
) -> dict[str, Any]:
    """Return a model's results on one kind of shift. has, of: number of the kind's benchmarks on which it has entries,
    and number under its protocol; placed: number on which it is ranked; first: number on which it can be first; leads:
    those of them whose task it has learnt; unlearnt: number on which its ID score is below the threshold. best: its row
    of the only table, of `ranked` entries; means: ood, id and gap over several tables; point: the mean normalised ID
    and OOD score over the benchmarks that it has, None if their metrics have no chance level."""
    rows = {view.benchmark: entries[view.identity] for view in tables if view.identity in entries}
    first = [row for row in rows.values() if row.rank is not None and row.rank[0] == 1]
    scaled = [name for view in tables if scales[name := view.benchmark] is not None]
    scored = [(rows[name].standing.score, scale) for name in scaled if name in rows and (scale := scales[name])]
    means = {name: _compute_mean(name, scored) for name in ("ood", "id", "gap")} if scored else {}
    single = len(tables) == 1
    return {
        "has": len(rows),
        "of": len(tables),
        "placed": sum(row.rank is not None for row in rows.values()),
        "first": len(first),
        "leads": sum(not is_naive(row) for row in first),
        "unlearnt": sum(bool(row.not_learnt) for row in rows.values()),
        "best": next(iter(rows.values()), None) if single else None,
        "ranked": tables[0].ranked,
        "means": means if not single and len(scored) == len(scaled) else {},
        "point": (means["id"].value, means["ood"].value) if means else None,
    }


def _compute_mean(name: str, scores: Sequence[tuple[Score, Scale]]) -> Interval:
    """Return the mean of the normalised ID or OOD scores or gaps."""
    normalised = []
    for score, scale in scores:
        estimate, (low, high) = getattr(score, name), score.bounds or (float("-inf"), float("inf"))
        chance, ends = (0.0, (low - high, high - low)) if name == "gap" else (scale.chance, (low, high))
        half = (estimate.high - estimate.low) / 2
        least, most = sorted((end - chance) / scale.span for end in ends)
        normalised.append(((estimate.value - chance) / scale.span, half / scale.span, least, most))
    values, halves, least, most = np.array(normalised).T
    value, half = float(values.mean()), float(np.sqrt((halves**2).sum())) / len(values)
    return Interval(value, max(value - half, float(least.mean())), min(value + half, float(most.mean())))


def _draw_models(rows: Sequence[dict[str, Any]]) -> Figure | None:
    """Return OOD against ID, a point for each model and kind of shift; None for fewer than two points."""
    models = [row for row in rows if any(cell["point"] for cell in row["cells"].values())]
    points = [(row, kind, cell["point"]) for row in models[:MOST] for kind, cell in row["cells"].items()]
    points = [item for item in points if item[2]]
    if len(points) < 2:
        return None
    plot = Plot((0.0, 1.0), (0.0, 1.0), width=640, height=420)
    plot.draw_axes(("ID score", "OOD score"), plot.x.ticks(5, 100), plot.y.ticks(5, 100))
    plot.draw_line("equal", (0.0, 0.0), (1.0, 1.0))
    data = []
    for row, kind, point in points:
        numbers = [format_score(value, SHARE) for value in point]
        tooltip = f"{row['model']}, {kind}: ID {numbers[0]}, OOD {numbers[1]}"
        plot.draw_marker(KINDS.index(kind), point[0], point[1], tooltip, hollow=row["naive"])
        data.append((row["model"], row["team"], row["budget"], kind, *numbers))
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


def _find_lead(kind: str, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the leaders of a kind of shift: under the published protocol, else the one with the most entries, and the
    full budget. benchmarks, models: their numbers; placed: the number of ranked models; most: the number of benchmarks
    on which a leader can be first; naive: the number of models that can be first there, but have not learnt the task;
    significant: whether one model is significantly ahead of all others on every benchmark of the kind."""
    protocols: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if kind in row["cells"]:
            protocols.setdefault((row["budget"], row["protocol"]), []).append(row)

    def rate(protocol: tuple[str, str]) -> tuple[bool, int, bool, tuple[str, str]]:
        entries = sum(row["cells"][kind]["has"] for row in protocols[protocol])
        return protocol[1] == PUBLISHED, entries, protocol[0] == "full", protocol

    if not protocols:
        return {"kind": kind, "what": WHAT[kind], "models": 0}
    budget, protocol = max(protocols, key=rate)
    models = protocols[budget, protocol]
    cells = [row["cells"][kind] for row in models]
    most, of = max(cell["leads"] for cell in cells), cells[0]["of"]
    leaders = [row for row in models if most and row["cells"][kind]["leads"] == most]
    placed = sum(cell["placed"] > 0 for cell in cells)
    alone = placed > 1 and len(leaders) == 1
    return {
        "kind": kind,
        "what": WHAT[kind],
        "protocol": f"{budget} budget" + ("" if protocol == PUBLISHED else f", {protocol}"),
        "benchmarks": of,
        "models": len(models),
        "placed": placed,
        "leaders": leaders,
        "most": most,
        "naive": sum(cell["first"] > cell["leads"] for cell in cells),
        "significant": alone and most == of == sum(cell["first"] for cell in cells),
    }
