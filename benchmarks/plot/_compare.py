"""The picture of `farshift compare`: where two runs differ, overall, along severity, and in each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...core.figures import drawn_with
from ...core.listings.plural import counted
from ..statistics.interval import Interval, read_interval
from . import finish, save
from ._axis import ends
from ._page import more, page
from ._style import BODY, COLUMN, GREY, HEAD, MINUS, PAGE, PALE, SETTINGS, TITLE, VIEWS, Look, key, marks
from ._text import folded, height, wrapped

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAP = Look("#000000", "s", "-")
MOST_GROUPS = 40
"""Groups that a picture shows: those that differ most, by the middle of their intervals."""


def draw_comparison(found: Mapping[str, Any], out: Path | str, *, title: str = "", note: bool = True) -> Path:
    """Write the picture of a comparison (`compare_full.compare_in_full`) to `out`, as PNG, SVG or PDF by its suffix;
    `title` and `note` as of `figure`.

    Raises as `draw`."""
    with drawn_with(SETTINGS):
        made = picture(found)
        finish(made, title, note)
        made.draw_without_rendering()
    of = f"{found['left']} minus {found['right']} on {found['benchmark']}"
    return save(made, out, "Farshift: compare", of)


def picture(found: Mapping[str, Any]) -> Figure:
    """Up to three panels, left minus right with paired 95 % t intervals: ID, OOD and gap; the difference along
    severity (hollow: ID rows; filled: OOD rows); and each OOD group. Zero is not a difference."""
    percent = list(found["bounds"] or ()) == [0, 1]
    groups = _shown(found["groups"])
    panels = 1 + bool(found["severity"]) + bool(groups)
    wide = COLUMN if panels == 1 else PAGE
    pitch = max(0.17, (1.25 * BODY * height(_names(groups).values()) + 2) / 72)
    tall = max(pitch * len(groups) + 1.0, 2.4 if found["severity"] else 1.7)
    keys = [key(look, name.upper(), hollow=name == "id", line=False) for name, look in VIEWS.items()]
    title = f"{found['left']} {MINUS} {found['right']} on {found['benchmark']}"
    heading = folded([title], TITLE, 72 * wide - 24)[title]
    figure = page(wide, tall + more([heading]), _note(found, percent, len(groups)), keys)
    widths = [1.0, *([1.3] if found["severity"] else []), *([1.2] if groups else [])]
    axes = figure.subplots(1, panels, width_ratios=widths, squeeze=False)[0].tolist()
    unit = "points of percent" if percent else found["metric"]
    _overall(axes.pop(0), found["difference"], percent, unit)
    if found["severity"]:
        _along(axes.pop(0), found["severity"], found["severity_unit"], percent)
    if groups:
        _by_group(axes.pop(0), groups, percent, unit)
    legend = figure.legends[0]
    legend.set_title(heading)
    legend.get_title().set_fontsize(TITLE)
    return figure


def _scaled(record: Mapping[str, Any], percent: bool) -> Interval:
    return Interval(*(record[name] * (100 if percent else 1) for name in ("value", "low", "high")))


def picture_note(found: Mapping[str, Any]) -> str:
    """What stands beneath the picture of a comparison."""
    return _note(found, list(found["bounds"] or ()) == [0, 1], len(_shown(found["groups"])))


def _note(found: Mapping[str, Any], percent: bool, groups: int) -> str:
    left_out = len(found["groups"]) - groups
    sentences = [
        f"Bars: {found['interval']}.",
        "Above zero the left scores more" + (", which is worse." if found["better"] == "lower" else "."),
        "Each group and each severity has an interval of its own." if found["severity"] or groups else "",
        f"Left out: {counted(left_out, 'group')}, where they differ less." if left_out else "",
    ]
    return " ".join(filter(None, sentences))


def _overall(axes: Axes, found: Mapping[str, Any], percent: bool, unit: str) -> None:
    rows = [name for name in ("id", "ood", "gap") if isinstance(read_interval(found[name]), Interval)]
    for row, name in enumerate(rows):
        look = VIEWS.get(name, GAP)
        marks(axes, [_scaled(found[name], percent)], [row], look, name, hollow=name == "id")
    axes.axvline(0, color=GREY, lw=0.8)
    axes.set_yticks(range(len(rows)), [name if name == "gap" else name.upper() for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set(title="overall", xlim=_limits([found[name] for name in rows], percent))
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel("\n".join(wrapped(unit, BODY, HEAD)))
    axes.grid(axis="x")


def _along(axes: Axes, points: Sequence[Mapping[str, Any]], unit: str, percent: bool) -> None:
    for view, look in VIEWS.items():
        mine = [point for point in points if point["view"] == view]
        if mine:
            middles = [(point["from"] + point["to"]) / 2 for point in mine]
            marks(axes, middles, [_scaled(point, percent) for point in mine], look, view, hollow=view == "id")
            if view == "id":
                axes.axvspan(min(p["from"] for p in mine), max(p["to"] for p in mine), color=PALE, alpha=0.5, lw=0)
    axes.axhline(0, color=GREY, lw=0.8)
    axes.set(title="along severity", ylim=_limits(points, percent), xlim=_severities(points))
    axes.set_xlabel("\n".join(wrapped(f"severity ({unit})" if unit else "severity", BODY, HEAD)))
    axes.grid(axis="y")


def _by_group(axes: Axes, groups: Sequence[tuple[str, Mapping[str, Any]]], percent: bool, unit: str) -> None:
    names = _names(groups)
    for row, (name, record) in enumerate(groups):
        marks(axes, [_scaled(record, percent)], [row], VIEWS["ood"], name)
    axes.axvline(0, color=GREY, lw=0.8)
    axes.set_yticks(range(len(groups)), [names[name] for name, _ in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.set(title="by group", xlim=_limits([record for _, record in groups], percent))
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel("\n".join(wrapped(unit, BODY, HEAD)))
    axes.grid(axis="x")


def _names(groups: Sequence[tuple[str, Any]]) -> dict[str, str]:
    return folded([name for name, _ in groups], BODY, 90.0)


def _shown(groups: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The groups that have an interval, the highest difference first; of many those that differ most."""
    known = [(name, record) for name, record in groups.items() if isinstance(read_interval(record), Interval)]
    most = sorted(known, key=lambda item: (-abs(item[1]["value"]), item[0]))[:MOST_GROUPS]
    return sorted(most, key=lambda item: (-item[1]["value"], item[0]))


def _limits(records: Sequence[Any], percent: bool) -> tuple[float, float]:
    """Ends of an axis of differences: every interval and zero, and some room."""
    held = [0.0, *ends(_scaled(record, percent) for record in records)]
    room = 0.06 * (max(held) - min(held)) or 1.0
    return min(held) - room, max(held) + room


def _severities(points: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Ends of the axis of severity, with room for bars beside their severity."""
    low, high = min(point["from"] for point in points), max(point["to"] for point in points)
    room = 0.06 * (high - low) or 1.0
    return low - room, high + room
