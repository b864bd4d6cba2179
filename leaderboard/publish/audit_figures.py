"""Figures of a split's audit: the distribution of rows over severity, labels and groups, in training and test. They
need only the audit, which is stored in the manifest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ...splits.assignment import PARTS
from .svg import SERIES, WIDTH, Figure, Plot, shorten

MOST = 12
"""Maximum number of labels or groups that are drawn; the table has all that are stored."""

_SERIES = dict(zip(PARTS, (0, 6, 2, 4, 1), strict=True))
"""The series of each part, the same in every figure."""


def make_audit_figures(audit: Mapping[str, Any], classes: Sequence[str] = ()) -> list[Figure]:
    """Return the figures for which an audit has data. classes: names of the label's classes 0, 1, .."""
    class_names = {str(number): name for number, name in enumerate(classes)}
    figures = (
        _make_severity_figure(audit.get("severity_histogram") or {}),
        _make_shares_figure("label", audit.get("labels", {}).get("shares") or {}, class_names),
        _make_shares_figure("group", audit.get("groups", {}).get("rows") or {}, {}),
    )
    return [figure for figure in figures if figure is not None]


def _make_severity_figure(histogram: Mapping[str, Any]) -> Figure | None:
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
        for name, value, (first, last) in zip(names, values, bins, strict=True):
            if value:
                wide = (last - first) / len(shares)
                start = first + number * wide
                _draw_bar(plot, part, (start, 0.0), (start + wide, value), name, value)
    rows = [(name, *(f"{values[k]:g}" for values in counts.values())) for k, name in enumerate(names)]
    head, title = ("severity", *counts), "Severity of the rows"
    return plot.finish(title, "Severity by part.", head, rows, _list_series(counts))


def _make_shares_figure(
    what: str, columns: Mapping[str, Mapping[str, float]], class_names: Mapping[str, str]
) -> Figure | None:
    """Return the most common labels or groups. columns: for each part, the number or share of rows by name."""
    totals = {part: total for part, values in columns.items() if (total := sum(values.values()))}
    shares = {part: {name: value / totals[part] for name, value in columns[part].items()} for part in totals}
    weight: dict[str, float] = {}
    for values in shares.values():
        for name, value in values.items():
            weight[name] = weight.get(name, 0.0) + value
    if len(weight) < 2:
        return None
    keys = sorted(sorted(weight, key=lambda name: (-weight[name], name))[:MOST], key=_make_sort_key)
    names = [class_names.get(key, key) for key in keys]
    top = max(max(values.get(key, 0.0) for key in keys) for values in shares.values())
    row = 6 * len(shares) + 8  # bars 6 high, 4 apart from the rows above and below
    plot = Plot((0.0, top), (len(names), 0), WIDTH, 14 + 44 + row * len(names), (14, 16, 44, 150))
    plot.draw_columns(plot.x.ticks(4, 100))
    plot.write("share of the part's rows (%)", top / 2, len(names), css="name", dy=36)
    for k, (key, name) in enumerate(zip(keys, names, strict=True)):
        plot.write(shorten(name, 20), 0, k + 0.5, "end", dx=-6, dy=4)
        for number, (part, values) in enumerate(shares.items()):
            if value := values.get(key, 0.0):
                y = k + (4 + 6 * number) / row
                _draw_bar(plot, part, (0.0, y), (value, y + 6 / row), name, value)
    caption = f"The {len(names)} most common of {len(weight)} {what}s." if len(weight) > MOST else f"All {what}s."
    rows = [
        (name, *(f"{100 * values.get(key, 0.0):.1f}" for values in shares.values()))
        for key, name in zip(keys, names, strict=True)
    ]
    head = (what, *(f"{part} (%)" for part in shares))
    return plot.finish(f"{what.capitalize()}s of the rows", caption, head, rows, _list_series(shares))


def _draw_bar(
    plot: Plot, part: str, start: tuple[float, float], end: tuple[float, float], name: str, share: float
) -> None:
    plot.draw_box(f"c{_get_series(part)} fill", start, end, f"{part}, {name}: {100 * share:.1f} %")


def _get_series(part: str) -> int:
    return _SERIES.get(part, SERIES - 1)


def _list_series(parts: Mapping[str, Any]) -> list[tuple[int, str]]:
    return [(_get_series(part), part) for part in parts]


def _make_sort_key(name: str) -> tuple[int, float, str]:
    """Sort key: numbers by value, then other names alphabetically."""
    try:
        return 0, float(name), name
    except ValueError:
        return 1, 0.0, name
