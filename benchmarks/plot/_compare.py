"""The figure of `farshift compare`: differences between two runs overall, along severity, and in each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.figures import use_plot_settings
from ...core.text import format_count
from ..statistics.interval import Interval, read_interval
from . import finish_figure, save_figure
from ._axis import list_interval_ends
from ._page import compute_extra_height, make_page
from ._style import (
    BODY,
    COLUMN,
    GREY,
    HEAD,
    MINUS,
    PAGE,
    PALE,
    SETTINGS,
    TITLE,
    VIEWS,
    Look,
    draw_marks,
    make_legend_key,
)
from ._text import count_most_lines, fold_names, wrap_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAP = Look("#000000", "s", "-")
MOST_GROUPS = 40
"""The maximum number of groups shown: those with the largest absolute difference."""


def draw_comparison(comparison: Mapping[str, Any], out: Path | str, *, title: str = "", note: bool = True) -> Path:
    """Write the figure of a comparison (`compare_full.compare_in_full`) to `out`, as PNG, SVG or PDF by its suffix;
    `title` and `note` as in `make_figure`.

    Raises as `draw_plot`."""
    with use_plot_settings(SETTINGS):
        plot = make_comparison_figure(comparison)
        finish_figure(plot, title, note)
        plot.draw_without_rendering()
    of = f"{comparison['left']} minus {comparison['right']} on {comparison['benchmark']}"
    return save_figure(plot, out, "Farshift: compare", of)


def make_comparison_figure(comparison: Mapping[str, Any]) -> Figure:
    """Make up to three panels of left minus right with paired 95 % t intervals: ID, OOD and gap; the difference along
    severity (hollow: ID rows; filled: OOD rows); and each OOD group. A line marks zero."""
    percent = list(comparison["bounds"] or ()) == [0, 1]
    groups = _select_groups(comparison["groups"])
    panels = 1 + bool(comparison["severity"]) + bool(groups)
    wide = COLUMN if panels == 1 else PAGE
    pitch = max(0.17, (1.25 * BODY * count_most_lines(_fold_group_names(groups).values()) + 2) / 72)
    tall = max(pitch * len(groups) + 1.0, 2.4 if comparison["severity"] else 1.7)
    keys = [make_legend_key(look, name.upper(), hollow=name == "id", line=False) for name, look in VIEWS.items()]
    title = f"{comparison['left']} {MINUS} {comparison['right']} on {comparison['benchmark']}"
    heading = fold_names([title], TITLE, 72 * wide - 24)[title]
    figure = make_page(
        wide, tall + compute_extra_height([heading]), _format_note(comparison, percent, len(groups)), keys
    )
    widths = [1.0, *([1.3] if comparison["severity"] else []), *([1.2] if groups else [])]
    axes = figure.subplots(1, panels, width_ratios=widths, squeeze=False)[0].tolist()
    unit = "percentage points" if percent else comparison["metric"]
    _draw_overall(axes.pop(0), comparison["difference"], percent, unit)
    if comparison["severity"]:
        _draw_severities(axes.pop(0), comparison["severity"], comparison["severity_unit"], percent)
    if groups:
        _draw_groups(axes.pop(0), groups, percent, unit)
    legend = figure.legends[0]
    legend.set_title(heading)
    legend.get_title().set_fontsize(TITLE)
    return figure


def _scale_interval(record: Mapping[str, Any], percent: bool) -> Interval:
    return Interval(*(record[name] * (100 if percent else 1) for name in ("value", "low", "high")))


def make_comparison_note(comparison: Mapping[str, Any]) -> str:
    """Return the note below the figure of a comparison."""
    return _format_note(
        comparison, list(comparison["bounds"] or ()) == [0, 1], len(_select_groups(comparison["groups"]))
    )


def _format_note(comparison: Mapping[str, Any], percent: bool, groups: int) -> str:
    left_out = len(comparison["groups"]) - groups
    sentences = [
        f"Bars: {comparison['interval']}.",
        "Above zero: the left run scores higher" + (" (worse)." if comparison["better"] == "lower" else "."),
        "Intervals by severity and group are unadjusted." if comparison["severity"] or groups else "",
        f"Not shown: {format_count(left_out, 'group')} with smaller differences." if left_out else "",
    ]
    return " ".join(filter(None, sentences))


def _draw_overall(axes: Axes, differences: Mapping[str, Any], percent: bool, unit: str) -> None:
    rows = [name for name in ("id", "ood", "gap") if isinstance(read_interval(differences[name]), Interval)]
    for row, name in enumerate(rows):
        look = VIEWS.get(name, GAP)
        draw_marks(axes, [_scale_interval(differences[name], percent)], [row], look, name, hollow=name == "id")
    axes.axvline(0, color=GREY, lw=0.8)
    axes.set_yticks(range(len(rows)), [name if name == "gap" else name.upper() for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set(title="overall", xlim=_compute_limits([differences[name] for name in rows], percent))
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel("\n".join(wrap_text(unit, BODY, HEAD)))
    axes.grid(axis="x")


def _draw_severities(axes: Axes, points: Sequence[Mapping[str, Any]], unit: str, percent: bool) -> None:
    for view, look in VIEWS.items():
        view_points = [point for point in points if point["view"] == view]
        if view_points:
            middles = [(point["from"] + point["to"]) / 2 for point in view_points]
            draw_marks(
                axes,
                middles,
                [_scale_interval(point, percent) for point in view_points],
                look,
                view,
                hollow=view == "id",
            )
            if view == "id":
                axes.axvspan(
                    min(p["from"] for p in view_points), max(p["to"] for p in view_points), color=PALE, alpha=0.5, lw=0
                )
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set(title="along severity", ylim=_compute_limits(points, percent), xlim=_compute_severity_limits(points))
    axes.set_xlabel("\n".join(wrap_text(f"severity ({unit})" if unit else "severity", BODY, HEAD)))
    axes.grid(axis="y")


def _draw_groups(axes: Axes, groups: Sequence[tuple[str, Mapping[str, Any]]], percent: bool, unit: str) -> None:
    names = _fold_group_names(groups)
    for row, (name, record) in enumerate(groups):
        draw_marks(axes, [_scale_interval(record, percent)], [row], VIEWS["ood"], name)
    axes.axvline(0, color=GREY, lw=0.8)
    axes.set_yticks(range(len(groups)), [names[name] for name, _ in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set(title="by group", xlim=_compute_limits([record for _, record in groups], percent))
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel("\n".join(wrap_text(unit, BODY, HEAD)))
    axes.grid(axis="x")


def _fold_group_names(groups: Sequence[tuple[str, Any]]) -> dict[str, str]:
    return fold_names([name for name, _ in groups], BODY, 90.0)


def _select_groups(groups: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the groups that have an interval, largest difference first; at most the `MOST_GROUPS` that differ most."""
    known = [(name, record) for name, record in groups.items() if isinstance(read_interval(record), Interval)]
    most = sorted(known, key=lambda item: (-abs(item[1]["value"]), item[0]))[:MOST_GROUPS]
    return sorted(most, key=lambda item: (-item[1]["value"], item[0]))


def _compute_limits(records: Sequence[Any], percent: bool) -> tuple[float, float]:
    """Return the limits of an axis of differences: every interval and zero, with a margin."""
    values = [0.0, *list_interval_ends(_scale_interval(record, percent) for record in records)]
    room = 0.06 * (max(values) - min(values)) or 1.0
    return min(values) - room, max(values) + room


def _compute_severity_limits(points: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the limits of the severity axis, with a margin for bars that are offset from their severity."""
    low, high = min(point["from"] for point in points), max(point["to"] for point in points)
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room
