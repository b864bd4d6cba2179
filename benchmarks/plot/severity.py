"""Score against severity: how fast scores fall with the distance from the training set. One line per model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ..scoring.record import Score, SeverityPoint
from ._panels import Panel, describe_incomparable, describe_intervals, make_panels
from ._style import (
    COLUMN,
    GREY,
    HEAD,
    NAME,
    PAGE,
    PALE,
    Look,
    assign_looks,
    draw_marks,
    fold,
    list_interval_ends,
    make_legend_key,
    make_panel_grid,
    set_score_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def picture(records: Sequence[Score]) -> Figure:
    """Plot scores at the middle of each severity bucket, with 95 % t intervals: hollow points for ID rows, filled ones
    for OOD rows. The range of severities of the ID rows, which are distributed as the training set, is shaded.

    Raises `FarshiftError` if the rows of a benchmark have no severity."""
    if lacking := sorted({record.benchmark for record in records if not record.severity}):
        raise FarshiftError(f"{', '.join(lacking)}: rows have no severity, so there is no curve: omit this run")
    panel_list = make_panels(records)
    look = assign_looks([name for panel in panel_list for name in panel.names])
    keys = [make_legend_key(each, fold(name, NAME)) for name, each in look.items()]
    is_wide = len(look) > 6
    figure, places = make_panel_grid(
        panel_list, PAGE if is_wide else COLUMN, 3.0 if is_wide else 2.4, _format_note(records), keys
    )
    for axes, panel in zip(places, panel_list, strict=True):
        _draw_panel(axes, panel, look)
    return figure


def _format_note(records: Sequence[Score]) -> str:
    buckets = any(point.first != point.last for record in records for point in record.severity)
    sentences = [
        f"Bars: {describe_intervals(records)}.",
        "Hollow: ID rows; filled: OOD rows.",
        "Shaded, up to the dotted line: the severities of the ID rows (the training range).",
        "Points are drawn at the middle of their severity bucket." if buckets else "",
        describe_incomparable(records),
    ]
    return " ".join(filter(None, sentences))


def _draw_panel(axes: Axes, panel: Panel, look: Mapping[str, Look]) -> None:
    first = panel.records[0]
    inside = [point for record in panel.records for point in _list_points(record, "id")]
    if inside:
        edge = max(point.last for point in inside)
        axes.axvspan(min(point.first for point in inside), edge, color=PALE, alpha=0.5, lw=0, zorder=0)
        axes.axvline(edge, color=GREY, lw=0.8, ls=(0, (2, 2)), zorder=1)
    for name, record in zip(panel.names, panel.records, strict=True):
        for path in list_paths(record):
            axes.plot(*zip(*path, strict=True), color=look[name].colour, ls=look[name].line, zorder=2)
        for view in ("id", "ood"):
            if points := _list_points(record, view):
                middles, estimates = zip(*((point.middle, point.estimate) for point in points), strict=True)
                draw_marks(axes, middles, estimates, look[name], f"{name}, {view}", hollow=view == "id")
    points = [point for record in panel.records for point in record.severity]
    set_score_axis(axes, "y", list_interval_ends(point.estimate for point in points), first.bounds, panel.percent)
    _set_severity_axis(axes, points)
    axes.grid(axis="y")
    axes.set_ylabel(panel.metric)
    what = ", ".join(dict.fromkeys(first.severity_unit.split(", ")))  # "level, level": the unit is the name
    label = f"severity ({what})" if what else "severity"
    axes.set_xlabel(fold(label, HEAD + 4))


def _set_severity_axis(axes: Axes, points: Sequence[SeverityPoint]) -> None:
    """Set limits with a margin, and ticks at the occurring severities if they are few and far enough apart."""
    from matplotlib.ticker import FixedLocator, MaxNLocator

    values = sorted({float(end) for point in points for end in (point.first, point.last)})
    span = values[-1] - values[0]
    margin = 0.06 * span or 1.0
    axes.set_xlim(values[0] - margin, values[-1] + margin)
    clear = all(after - before > 0.15 * span for before, after in pairwise(values))
    all_integers = all(value.is_integer() for value in values)
    axes.xaxis.set_major_locator(FixedLocator(values) if clear else MaxNLocator(6, integer=all_integers))


def _list_points(record: Score, view: str) -> list[SeverityPoint]:
    return sorted((point for point in record.severity if point.view == view), key=lambda point: point.middle)


def list_paths(record: Score) -> list[list[tuple[float, float]]]:
    """Return the lines through the points: one through all if OOD starts beyond ID, else one per view, since rows of
    the two views with the same severity differ in more than severity."""
    views = [points for view in ("id", "ood") if (points := _list_points(record, view))]
    if len(views) == 2 and max(point.last for point in views[0]) < min(point.first for point in views[1]):
        views = [views[0] + views[1]]
    return [[(point.middle, point.estimate.value) for point in points] for points in views]
