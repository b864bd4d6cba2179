"""Plots with one row per model: names on the left, a score axis below, and optional text on the right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._axis import list_interval_ends, set_score_axis
from ._page import compute_extra_height, make_page
from ._panels import Panel, get_estimate
from ._style import BODY, COLUMN, PAGE, PALE, TITLE
from ._text import count_most_lines, fold_names, measure_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def make_row_axes(
    panels: Sequence[Panel],
    views: Sequence[str],
    pitch: float,
    note: str,
    keys: Sequence[Line2D],
    beside: Sequence[Sequence[str]] = (),
) -> tuple[Figure, list[Axes]]:
    """Make one axes per panel, stacked: the k-th model is the row at height k, counted downwards, `pitch` inches each,
    and the score axis includes its `views` with their intervals. `beside` has for each panel a header and a text for
    each row."""
    names = [name for panel in panels for name in panel.names]
    heads = 1 if beside else 0
    most = 60 if beside else 90
    fits = max(measure_width(name, BODY) for name in names) <= most
    short = fold_names(names, BODY, most if fits else 190)
    wide = COLUMN if fits else PAGE
    # A title starts where the names end, and extends to the right edge of the figure.
    room = 72 * wide - max(measure_width(line, BODY) for name in short.values() for line in name.splitlines()) - 16
    titles = fold_names([panel.title for panel in panels], TITLE, room)
    pitch = max(pitch, (1.25 * BODY * count_most_lines(short.values()) + 4) / 72)
    # A panel's title and score axis need 0.55 inches in addition to its rows.
    heights = [pitch * (len(panel.names) + heads) + 0.1 for panel in panels]
    figure = make_page(wide, sum(heights) + 0.55 * len(panels) + compute_extra_height(titles.values()), note, keys)
    places = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights).ravel().tolist()
    for number, (axes, panel) in enumerate(zip(places, panels, strict=True)):
        count = len(panel.names)
        axes.set_ylim(count - 0.5, -0.5 - heads)
        axes.set_yticks(range(count), [short[name] for name in panel.names])
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_bounds(count - 0.5, -0.5)
        axes.hlines(
            [row - 0.5 for row in range(1 - heads, count)],
            0,
            1,
            transform=axes.get_yaxis_transform(),
            color=PALE,
            lw=0.5,
            zorder=0,
        )
        estimates = [get_estimate(record, view) for record in panel.records for view in views]
        set_score_axis(axes, "x", list_interval_ends(estimates), panel.records[0].bounds, panel.percent)
        axes.set_title(titles[panel.title])
        axes.set_xlabel(panel.metric)
        if beside:
            right = axes.secondary_yaxis("right")
            right.set_yticks(range(-1, count), beside[number])
            right.tick_params(length=0)
            right.spines["right"].set_visible(False)
    return figure, places
