"""Figures of a split's audit: the distribution of rows over severity, labels and groups, in training and test. They
need only the audit, which is stored in the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ....splits.assignment import PARTS
from .svg import (
    BOTTOM,
    SERIES,
    TOP,
    WIDTH,
    Axis,
    Figure,
    draw_axes,
    draw_label,
    draw_line,
    draw_svg,
    escape_text,
    list_ticks,
    make_x_axis,
    make_y_axis,
)

HIGH = 220
"""Height of an audit's figure."""

MOST = 12
"""Maximum number of labels or groups that are drawn; the table has all that are stored."""

_COLOURS = dict(zip(PARTS, (0, 6, 2, 4, 1), strict=True))


def make_audit_figures(audit: Mapping[str, Any], classes: Sequence[str] = ()) -> list[Figure]:
    """Return the figures for which an audit has data. classes: names of the label's classes 0, 1, .."""
    class_names = {str(number): name for number, name in enumerate(classes)}
    figures = (
        _make_severity_figure(audit),
        _make_shares_figure(audit, "labels", class_names),
        _make_shares_figure(audit, "groups", {}),
    )
    return [figure for figure in figures if figure is not None]


def _make_severity_figure(audit: Mapping[str, Any]) -> Figure | None:
    histogram = audit.get("severity_histogram")
    if not histogram:
        return None
    counts = {part: values for part, values in histogram["counts"].items() if sum(values)}
    edges = histogram.get("edges")
    names = [f"{value:g}" for value in histogram["values"]] if "values" in histogram else []
    if edges:
        names = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    shares = {part: [value / sum(values) for value in values] for part, values in counts.items()}
    top = max(max(values) for values in shares.values())
    x = make_x_axis(edges[0], edges[-1]) if edges else make_x_axis(-0.5, len(names) - 0.5)
    y = make_y_axis(0.0, top, HIGH)
    marks = (
        [(value, f"{value:g}") for value in list_ticks(x.low, x.high)]
        if edges
        else [(float(k), name) for k, name in enumerate(names) if len(names) <= 16 or k % (len(names) // 12) == 0]
    )
    content = draw_axes(x, y, ("severity", "share of rows (%)"), marks, _list_percent_ticks(top))
    for number, (part, values) in enumerate(shares.items()):
        for k, value in enumerate(values):
            if not value:
                continue
            first, last = (edges[k], edges[k + 1]) if edges else (k - 0.4, k + 0.4)
            wide = (x.at(last) - x.at(first)) / len(shares)
            content.append(_draw_bar(part, x.at(first) + number * wide, y.at(value), wide, y.first, names[k], value))
    return _make_figure(content, "Severity of the rows", "severity", names, counts, "Severity by part.")


def _make_shares_figure(audit: Mapping[str, Any], what: str, class_names: Mapping[str, str]) -> Figure | None:
    section = audit.get(what, {})
    columns = section.get("shares" if what == "labels" else "rows")
    if not columns:
        return None
    totals = {part: sum(values.values()) for part, values in columns.items()}
    columns = {part: values for part, values in columns.items() if totals[part]}
    every = list(dict.fromkeys(name for values in columns.values() for name in values))
    if len(every) < 2:
        return None
    weight = {name: sum(values.get(name, 0) / totals[part] for part, values in columns.items()) for name in every}
    names = sorted(sorted(every, key=lambda name: (-weight[name], name))[:MOST], key=_make_sort_key)
    shares = {part: [values.get(name, 0) / totals[part] for name in names] for part, values in columns.items()}
    names = [class_names.get(name, name) for name in names]
    top = max(max(values) for values in shares.values())
    tall = TOP + BOTTOM + len(names) * (6 * len(shares) + 8)
    first = 150
    x, y = Axis(0.0, top, first, WIDTH - 16), Axis(0.0, float(len(names)), TOP, tall - BOTTOM)
    content = []
    for value, tick_label in _list_percent_ticks(top):
        content.append(draw_line("grid", x.at(value), y.first, x.at(value), y.last))
        content.append(draw_label(x.at(value), y.last + 17, tick_label))
    content.append(draw_label((x.first + x.last) / 2, y.last + 36, "share of the part's rows (%)", name="name"))
    for k, name in enumerate(names):
        content.append(draw_label(first - 6, y.at(k + 0.5) + 4, name if len(name) <= 20 else f"{name[:19]}…", "end"))
        for number, (part, values) in enumerate(shares.items()):
            if values[k]:
                wide = x.at(values[k]) - x.first
                content.append(
                    _draw_box(
                        part,
                        x.first,
                        y.at(k) + 4 + 6 * number,
                        max(wide, 1.0),
                        6,
                        f"{part}, {name}: {100 * values[k]:.1f} %",
                    )
                )
    singular = "label" if what == "labels" else "group"
    caption = f"The {len(names)} most common of {len(every)} {what}." if len(every) > len(names) else f"All {what}."
    return _make_figure(
        content, f"{what.capitalize()} of the rows", singular, names, shares, caption, tall, percent=True
    )


def _make_figure(
    content: Sequence[str],
    title: str,
    what: str,
    names: Sequence[str],
    columns: Mapping[str, Sequence[float]],
    caption: str,
    high: int = HIGH,
    percent: bool = False,
) -> Figure:
    def cell(value: float) -> str:
        return f"{100 * value:.1f}" if percent else f"{value:g}"

    head = (what, *(f"{part} (%)" if percent else part for part in columns))
    rows = tuple((name, *(cell(values[k]) for values in columns.values())) for k, name in enumerate(names))
    return Figure(
        draw_svg(content, title, WIDTH, high),
        title,
        caption,
        head,
        rows,
        tuple((get_series(part), part) for part in columns),
    )


def get_series(part: str) -> int:
    """Return the series number of a part, which is the same in every figure."""
    return _COLOURS.get(part, SERIES - 1)


def _list_percent_ticks(top: float) -> list[tuple[float, str]]:
    return [(value, f"{100 * value:g}") for value in list_ticks(0.0, top, 4)]


def _draw_bar(part: str, x: float, y: float, wide: float, floor: float, name: str, value: float) -> str:
    return _draw_box(part, x, y, max(wide, 0.8), max(floor - y, 0.8), f"{part}, {name}: {100 * value:.1f} %")


def _draw_box(part: str, x: float, y: float, wide: float, high: float, tooltip: str) -> str:
    size = f'x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}"'
    return f'<rect class="c{get_series(part)} fill" {size}><title>{escape_text(tooltip)}</title></rect>'


def _make_sort_key(name: str) -> tuple[int, float, str]:
    """Sort key: numbers by value, then other names alphabetically."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
