"""The figure of `farshift compare`: differences between two runs overall, along severity, and in each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.figures import use_plot_settings
from ...core.text import drop_version, format_count
from ..statistics.interval import Interval, read_interval
from . import finish_figure, save_figure
from ._layout import compute_extra_height, list_interval_ends, make_page
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
    count_most_lines,
    draw_marks,
    fold_names,
    fold_text,
    make_legend_key,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[tuple[str, Mapping[str, Any]]]
"""Differences by name."""

LOOKS = VIEWS | {"gap": Look("#000000", "s", "-")}
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
    unit = "percentage points" if percent else drop_version(comparison["metric"])
    overall = [item for item in comparison["difference"].items() if isinstance(read_interval(item[1]), Interval)]
    _draw_rows(axes.pop(0), "overall", overall, percent, unit)
    if comparison["severity"]:
        _draw_severities(axes.pop(0), comparison["severity"], comparison["severity_unit"], percent)
    if groups:
        _draw_rows(axes.pop(0), "by group", groups, percent, unit)
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


def _draw_rows(axes: Axes, title: str, rows: Rows, percent: bool, unit: str) -> None:
    """Draw a row for each difference: ID, OOD and gap, or the OOD rows of each group."""
    is_overall = title == "overall"
    names = {"id": "ID", "ood": "OOD", "gap": "gap"} if is_overall else _fold_group_names(rows)
    for row, (name, record) in enumerate(rows):
        look = LOOKS[name if is_overall else "ood"]
        draw_marks(axes, [_scale_interval(record, percent)], [row], look, name, hollow=look == LOOKS["id"])
    axes.axvline(0, color=GREY, lw=0.8)
    axes.set_yticks(range(len(rows)), [names[name] for name, _ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set(title=title, xlim=_compute_limits([record for _, record in rows], percent))
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel("\n".join(fold_text(unit, BODY, HEAD)))
    axes.grid(axis="x")


def _draw_severities(axes: Axes, points: Sequence[Mapping[str, Any]], unit: str, percent: bool) -> None:
    for view, look in VIEWS.items():
        view_points = [point for point in points if point["view"] == view]
        if view_points:
            middles = [(point["from"] + point["to"]) / 2 for point in view_points]
            estimates = [_scale_interval(point, percent) for point in view_points]
            draw_marks(axes, middles, estimates, look, view, hollow=view == "id")
            if view == "id":
                ends = min(p["from"] for p in view_points), max(p["to"] for p in view_points)
                axes.axvspan(*ends, color=PALE, alpha=0.5, lw=0)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set(title="along severity", ylim=_compute_limits(points, percent))
    axes.set_xlim(_add_margin([end for point in points for end in (point["from"], point["to"])]))
    axes.set_xlabel("\n".join(fold_text(f"severity ({unit})" if unit else "severity", BODY, HEAD)))
    axes.grid(axis="y")


def _fold_group_names(groups: Rows) -> dict[str, str]:
    return fold_names([name for name, _ in groups], BODY, 90.0)


def _select_groups(groups: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the groups that have an interval, largest difference first; at most the `MOST_GROUPS` that differ most."""
    known = [(name, record) for name, record in groups.items() if isinstance(read_interval(record), Interval)]
    most = sorted(known, key=lambda item: (-abs(item[1]["value"]), item[0]))[:MOST_GROUPS]
    return sorted(most, key=lambda item: (-item[1]["value"], item[0]))


def _compute_limits(records: Sequence[Any], percent: bool) -> tuple[float, float]:
    """Return the limits of an axis of differences: every interval and zero, with a margin."""
    return _add_margin([0.0, *list_interval_ends(_scale_interval(record, percent) for record in records)])


def _add_margin(values: Sequence[float]) -> tuple[float, float]:
    room = 0.06 * (max(values) - min(values)) or 1.0
    return min(values) - room, max(values) + room
