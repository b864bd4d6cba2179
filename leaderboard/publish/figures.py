"""Figures of a table, of an entry and of a split's audit: ID against OOD, curves over severity, and distributions of
rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ...benchmarks.benchmark import load_benchmarks
from ...benchmarks.derived.robustness import FEWEST, Line, Point, fit_line
from ...benchmarks.plot.id_ood import choose_ticks, clip_line, clip_to_logit, compute_limits, expit, logit
from ...benchmarks.plot.severity import list_paths
from ...benchmarks.scoring.record import Score
from ...benchmarks.statistics.interval import Estimate
from ...core.text import drop_version
from ...splits.assignment import PARTS
from ..tables.snapshot import format_model_name
from ..tables.table import Table
from .page import SHARE, format_difference, format_interval, format_range, format_score
from .svg import SERIES, Figure, Plot

SIDE = 420
"""Side of the plot of ID against OOD, which is square because both axes have the same scale."""

LEADING = 5
"""Maximum number of entries with a severity curve; more lines would hide each other."""

MOST = 40
"""Maximum number of entries with intervals in a scatter plot."""


def describe_axis(meaning: Any) -> str:
    """Return what a severity or group is, such as "output length (actions)"; empty without a definition."""
    if meaning is None:
        return ""
    return f"{meaning.name} ({meaning.unit})" if meaning.unit else str(meaning.name)


def make_table_figures(view: Table) -> list[Figure]:
    """Return the figures of a table's entries."""
    scores = [row.standing.score for row in view.rows]
    names = [format_model_name(row.standing) for row in view.rows]
    figures = make_scatter_figure(scores, names), make_severity_figure(scores, names)
    return [figure for figure in figures if figure is not None]


def make_scatter_figure(scores: Sequence[Score], names: Sequence[str]) -> Figure | None:
    """Return OOD against ID on logit axes, a point for each entry of a table (Taori et al., NeurIPS 2020; Miller et
    al., ICML 2021); None for fewer than two entries, or for a metric that is not between 0 and 1 with higher being
    better. names: the names of the entries.

    With at least three different ID scores, the least-squares line logit(OOD) = a + b logit(ID) through all entries is
    drawn: an entry above it has a higher OOD score than its ID score predicts."""
    if len(scores) < 2 or any(score.bounds != SHARE or score.better != "higher" for score in scores):
        return None
    low, high = compute_limits([estimate for score in scores for estimate in (score.id, score.ood)])
    ends = logit(low), logit(high)
    plot = Plot(ends, ends, SIDE, SIDE)
    marks = [(logit(tick), f"{100 * tick:g}") for tick in choose_ticks(low, high)]
    plot.draw_axes(("ID score (%)", "OOD score (%)"), marks, marks)
    plot.draw_line("equal", (ends[0], ends[0]), (ends[1], ends[1]))
    fitted = _fit_entry_line(scores)
    if fitted is not None:
        plot.draw_path("fit", [(at, fitted.intercept + fitted.slope * at) for at in clip_line(fitted, *ends)])
    rows = []
    for name, score in zip(names, scores, strict=True):
        on_id, on_ood = clip_to_logit(score.id), clip_to_logit(score.ood)
        x, y = logit(on_id.value), logit(on_ood.value)
        if len(scores) <= MOST:
            plot.draw_line("reach", (logit(on_id.low), y), (logit(on_id.high), y))
            plot.draw_line("reach", (x, logit(on_ood.low)), (x, logit(on_ood.high)))
        cells = name, format_score(score.id.value, SHARE), format_score(score.ood.value, SHARE)
        plot.draw_marker(0, x, y, f"{name}: ID {cells[1]}, OOD {cells[2]}")
        if len(scores) <= 3 and len(name) <= 24 and plot.x.first + 60 < plot.x.at(x) < plot.x.last - 44:
            plot.write(name, x, y, dy=-9)
        above = on_ood.value - expit(fitted.intercept + fitted.slope * x) if fitted is not None else None
        rows.append((*cells, "" if above is None else format_difference(above, SHARE)))
    caption = "Each point is an entry" + (", with 95 % intervals" if len(scores) <= MOST else "")
    caption += "; dashed: OOD equal to ID."
    if fitted is not None:
        caption += " Solid: the line fitted to the entries; above it, OOD is higher than ID predicts."
    head = ("entry", "ID (%)", "OOD (%)", "above the line (points)")
    return plot.finish("ID against OOD", caption, head, rows, label="OOD score against ID score")


def _fit_entry_line(scores: Sequence[Score]) -> Line | None:
    points = [Point(score.id.value, score.ood.value, score.id.rows, score.ood.rows) for score in scores]
    return fit_line(points) if len({point.id for point in points}) >= FEWEST else None


def make_severity_figure(scores: Sequence[Score], names: Sequence[str]) -> Figure | None:
    """Return the score as a function of the severity of test rows, for the first entries that have such a curve; None
    if none has."""
    chosen = [(name, score) for name, score in zip(names, scores, strict=True) if len(score.severity) > 1][:LEADING]
    if not chosen:
        return None
    first = chosen[0][1]
    bounds, known = first.bounds, load_benchmarks().get(first.benchmark)
    axis = (describe_axis(known.manifest.definition.severity) if known is not None else "") or "severity"
    points = [point for _, score in chosen for point in score.severity]
    middles = [point.middle for point in points]
    plot = Plot((min(middles), max(middles)), _find_range([point.estimate for point in points], first))
    name, scale = ("score (%)", 100.0) if bounds == SHARE else (drop_version(first.metric), 1.0)
    plot.draw_axes((axis, name), plot.x.ticks(), plot.y.ticks(5, scale))
    inside = max((point.last for point in points if point.view == "id"), default=None)
    if inside is not None and plot.x.low < inside < plot.x.high:
        plot.draw_line("edge", (inside, plot.y.low), (inside, plot.y.high))
    rows = []
    for series, (name, score) in enumerate(chosen):
        css = f"c{series % SERIES}"
        for path in list_paths(score):
            plot.draw_path(f"{css} curve", path)
        for point in sorted(score.severity, key=lambda point: (point.middle, point.view)):
            estimate, value = point.estimate, format_score(point.estimate.value, bounds)
            where = format_range(point.first, point.last)
            plot.draw_line(f"{css} bar", (point.middle, estimate.low), (point.middle, estimate.high))
            tooltip = f"{name}, {where}: {value}"
            plot.draw_marker(series, point.middle, estimate.value, tooltip, hollow=point.view == "id")
            cells = name, where, point.view.upper(), f"{value} {format_interval(estimate, bounds)}"
            rows.append((*cells, str(estimate.rows)))
    caption = "Hollow: ID rows; filled: OOD rows; bars are 95 % intervals."
    if inside is not None:
        caption += " Dotted: the highest severity of the ID rows."
    head = ("entry", "severity", "rows", "score", "number of rows")
    series_names = [(series, name) for series, (name, _) in enumerate(chosen)]
    return plot.finish("Score by severity", caption, head, rows, series_names, f"Score by severity: {axis}")


def _find_range(estimates: Sequence[Estimate], score: Score) -> tuple[float, float]:
    """Return the range of an axis of scores: 0 to 1 for shares, else all intervals."""
    if score.bounds == SHARE:
        return SHARE
    return min(estimate.low for estimate in estimates), max(estimate.high for estimate in estimates)


_SERIES = dict(zip(PARTS, (0, 6, 2, 4, 1), strict=True))
"""The series of each part, the same in every figure."""


def make_audit_figure(audit: Mapping[str, Any]) -> Figure | None:
    """Return the distribution of a split's rows over severity, in training and test; None if its audit has none."""
    histogram = audit.get("severity_histogram") or {}
    counts = {part: values for part, values in histogram.get("counts", {}).items() if sum(values)}
    if not counts:
        return None
    if edges := histogram.get("edges"):
        names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
        bins = list(pairwise(edges))
    else:
        names = [f"{value:g}" for value in histogram["values"]]
        bins = [(k - 0.4, k + 0.4) for k in range(len(names))]
    shares = {part: [value / sum(values) for value in values] for part, values in counts.items()}
    top = max(max(values) for values in shares.values())
    plot = Plot((edges[0], edges[-1]) if edges else (-0.5, len(names) - 0.5), (0.0, top), height=220)
    every = max(1, len(names) // 12) if len(names) > 16 else 1
    marks = plot.x.ticks() if edges else [(float(k), names[k]) for k in range(0, len(names), every)]
    plot.draw_axes(("severity", "share of rows (%)"), marks, plot.y.ticks(4, 100))
    for number, (part, values) in enumerate(shares.items()):
        css = f"c{_SERIES.get(part, SERIES - 1)} fill"
        for name, value, (first, last) in zip(names, values, bins, strict=True):
            if value:
                wide = (last - first) / len(shares)
                start = first + number * wide
                plot.draw_box(css, (start, 0.0), (start + wide, value), f"{part}, {name}: {100 * value:.1f} %")
    rows = [(name, *(f"{values[k]:g}" for values in counts.values())) for k, name in enumerate(names)]
    head, title = ("severity", *counts), "Severity of the rows"
    return plot.finish(
        title, "Severity by part.", head, rows, [(_SERIES.get(part, SERIES - 1), part) for part in counts]
    )
