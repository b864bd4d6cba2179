"""Severity curves: the score as a function of the distance of test rows from the training set."""

from __future__ import annotations

from collections.abc import Sequence

from ....benchmarks.scoring.record import Score, SeverityPoint
from ..page_graphics import SHARE, format_score
from .svg import (
    SERIES,
    Figure,
    draw_axes,
    draw_line,
    draw_marker,
    draw_path,
    draw_svg,
    list_ticks,
    make_x_axis,
    make_y_axis,
)

LEADING = 5
"""Maximum number of entries that are drawn; more lines would hide each other."""


def make_severity_figure(scores: Sequence[Score], names: Sequence[str], axis: str) -> Figure | None:
    """Return the curves of the first entries that have one; None if none has. axis: the measure of severity and its
    unit."""
    chosen = [(name, score) for name, score in zip(names, scores, strict=True) if len(score.severity) > 1][:LEADING]
    if not chosen:
        return None
    every = [point for _, score in chosen for point in score.severity]
    share = chosen[0][1].bounds == SHARE
    low, high = (0.0, 1.0) if share else _compute_range(every)
    x = make_x_axis(min(point.middle for point in every), max(point.middle for point in every))
    y = make_y_axis(low, high)
    bounds = chosen[0][1].bounds
    content = draw_axes(
        x,
        y,
        (axis, "score (%)" if share else chosen[0][1].metric),
        [(value, f"{value:g}") for value in list_ticks(x.low, x.high)],
        [(value, f"{100 * value:g}" if share else f"{value:g}") for value in list_ticks(low, high, 5)],
    )
    inside = [point.last for point in every if point.view == "id"]
    if inside and x.low < max(inside) < x.high:
        content.append(draw_line("edge", x.at(max(inside)), y.first, x.at(max(inside)), y.last))
    rows = []
    for series, (name, score) in enumerate(chosen):
        points = sorted(score.severity, key=lambda point: (point.middle, point.view))
        content.append(
            draw_path(f"c{series % SERIES} curve", [(x.at(at.middle), y.at(at.estimate.value)) for at in points])
        )
        for at in points:
            estimate = at.estimate
            content.append(
                draw_line(
                    f"c{series % SERIES} bar", x.at(at.middle), y.at(estimate.low), x.at(at.middle), y.at(estimate.high)
                )
            )
            tooltip = f"{name}, {format_severity(at)}: {format_score(estimate.value, bounds)}"
            content.append(draw_marker(series, x.at(at.middle), y.at(estimate.value), tooltip, hollow=at.view == "id"))
            ends = f"[{format_score(estimate.low, bounds)}, {format_score(estimate.high, bounds)}]"
            rows.append(
                (
                    name,
                    format_severity(at),
                    at.view.upper(),
                    f"{format_score(estimate.value, bounds)} {ends}",
                    str(estimate.rows),
                )
            )
    caption = "Hollow: ID rows; filled: OOD rows; bars are 95 % intervals."
    if inside:
        caption += " Dotted: the highest severity of the ID rows."
    return Figure(
        draw_svg(content, f"Score by severity: {axis}"),
        "Score by severity",
        caption,
        ("entry", "severity", "rows", "score", "number of rows"),
        tuple(rows),
        tuple((number, name) for number, (name, _) in enumerate(chosen)),
    )


def format_severity(point: SeverityPoint) -> str:
    """Format the severities of a point: one value, or the first and the last."""
    ends = [f"{value:g}" for value in (point.first, point.last)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def _compute_range(points: Sequence[SeverityPoint]) -> tuple[float, float]:
    return min(point.estimate.low for point in points), max(point.estimate.high for point in points)


def list_severity_shares(score: Score) -> list[float]:
    """Return the scores from the least to the most severe rows; empty for fewer than two, or if they are not shares."""
    if len(score.severity) < 2 or score.bounds != SHARE:
        return []
    return [point.estimate.value for point in sorted(score.severity, key=lambda point: (point.middle, point.view))]


def draw_sparkline(score: Score, most: int = 10) -> str:
    """Return the severity curve as the points of a path, 60 wide and 16 high; empty if there is none to draw."""
    values = list_severity_shares(score)
    return draw_outline(thin_values(values, most)) if values else ""


def thin_values(values: Sequence[float], count: int) -> list[float]:
    """Return at most `count` of the values, evenly spaced, including the first and the last."""
    if len(values) <= count:
        return list(values)
    return [values[round(k * (len(values) - 1) / (count - 1))] for k in range(count)]


def draw_outline(values: Sequence[float]) -> str:
    """Return shares as a path, 60 wide and 16 high, in whole numbers: `M0 3L12 5 24 9`."""
    step = 60 / (len(values) - 1)
    points = [f"{round(k * step)} {round(16 * (1 - value))}" for k, value in enumerate(values)]
    return f"M{points[0]}L{' '.join(points[1:])}"
