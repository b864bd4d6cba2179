"""Severity curves: how fast the score falls as test rows lie further from training."""

from __future__ import annotations

from collections.abc import Sequence

from ....benchmarks.scoring.record import Score, SeverityPoint
from ..page_pictures import SHARE, shown
from .drawing import SERIES, Figure, across, drawn, frame, line, marker, path, ticks, up

LEADING = 5
"""So many entries are drawn: more lines hide each other."""


def severity_curves(scores: Sequence[Score], names: Sequence[str], axis: str) -> Figure | None:
    """The curves of the first entries that have one; None where none has. axis: what severity is, with its unit."""
    chosen = [(name, one) for name, one in zip(names, scores, strict=True) if len(one.severity) > 1][:LEADING]
    if not chosen:
        return None
    every = [point for _, one in chosen for point in one.severity]
    share = chosen[0][1].bounds == SHARE
    low, high = (0.0, 1.0) if share else _ends(every)
    x = across(min(point.middle for point in every), max(point.middle for point in every))
    y = up(low, high)
    bounds = chosen[0][1].bounds
    content = frame(
        x,
        y,
        (axis, "score (%)" if share else chosen[0][1].metric),
        [(value, f"{value:g}") for value in ticks(x.low, x.high)],
        [(value, f"{100 * value:g}" if share else f"{value:g}") for value in ticks(low, high, 5)],
    )
    inside = [point.last for point in every if point.view == "id"]
    if inside and x.low < max(inside) < x.high:
        content.append(line("edge", x.at(max(inside)), y.first, x.at(max(inside)), y.last))
    rows = []
    for series, (name, one) in enumerate(chosen):
        points = sorted(one.severity, key=lambda point: (point.middle, point.view))
        content.append(path(f"c{series % SERIES} curve", [(x.at(at.middle), y.at(at.estimate.value)) for at in points]))
        for at in points:
            found = at.estimate
            content.append(
                line(f"c{series % SERIES} bar", x.at(at.middle), y.at(found.low), x.at(at.middle), y.at(found.high))
            )
            said = f"{name}, {spoken(at)}: {shown(found.value, bounds)}"
            content.append(marker(series, x.at(at.middle), y.at(found.value), said, hollow=at.view == "id"))
            ends = f"[{shown(found.low, bounds)}, {shown(found.high, bounds)}]"
            rows.append((name, spoken(at), at.view.upper(), f"{shown(found.value, bounds)} {ends}", str(found.rows)))
    caption = "Hollow: ID rows; filled: OOD rows; bars are 95 % intervals."
    if inside:
        caption += " Dotted: how far the ID rows, which are like training, reach."
    return Figure(
        drawn(content, f"Score by severity: {axis}"),
        "Score by severity",
        caption,
        ("entry", "severity", "rows", "score", "number of rows"),
        tuple(rows),
        tuple((number, name) for number, (name, _) in enumerate(chosen)),
    )


def spoken(point: SeverityPoint) -> str:
    """The severities of a point: one, or from the first to the last."""
    ends = [f"{value:g}" for value in (point.first, point.last)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def _ends(points: Sequence[SeverityPoint]) -> tuple[float, float]:
    return min(point.estimate.low for point in points), max(point.estimate.high for point in points)


def shares_by_severity(score: Score) -> list[float]:
    """The scores from the least to the most severe rows; empty for fewer than two, or where they are not shares."""
    if len(score.severity) < 2 or score.bounds != SHARE:
        return []
    return [point.estimate.value for point in sorted(score.severity, key=lambda point: (point.middle, point.view))]


def sparkline(score: Score, most: int = 10) -> str:
    """The severity curve as the points of a path, 60 wide and 16 high; empty where there is none to draw."""
    values = shares_by_severity(score)
    return outline(thinned(values, most)) if values else ""


def thinned(values: Sequence[float], count: int) -> list[float]:
    """At most `count` of the values, evenly spaced, the first and the last among them."""
    if len(values) <= count:
        return list(values)
    return [values[round(k * (len(values) - 1) / (count - 1))] for k in range(count)]


def outline(values: Sequence[float]) -> str:
    """Shares as the points of a path, 60 wide and 16 high, whole numbers: `M0 3L12 5 24 9`."""
    step = 60 / (len(values) - 1)
    places = [f"{round(k * step)} {round(16 * (1 - value))}" for k, value in enumerate(values)]
    return f"M{places[0]}L{' '.join(places[1:])}"
