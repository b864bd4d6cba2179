"""The gap plot: each model's ID and OOD scores, connected by a line, and the gap with its own interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..scoring.record import Score
from ._panels import Panel, describe_incomparable, describe_intervals, format_estimate, get_estimate, make_panels
from ._style import BAR, MINUS, VIEWS, draw_marks, make_legend_key, make_row_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def picture(records: Sequence[Score]) -> Figure:
    """Plot one row per model, the best OOD score on top: ID (hollow circle) and OOD (filled diamond), connected, with
    95 % t intervals, and on the right the gap with its interval, in percentage points if the metric is in percent."""
    panel_list = [panel.by("ood") for panel in make_panels(records)]
    note = f"Bars and brackets: {describe_intervals(records)}. The gap is ID minus OOD, with its own interval."
    keys = [make_legend_key(VIEWS[view], view.upper(), hollow=view == "id", line=False) for view in VIEWS]
    beside = [
        ["gap (points)" if panel.percent else "gap", *(_format_gap(record, panel) for record in panel.records)]
        for panel in panel_list
    ]
    figure, places = make_row_axes(
        panel_list, list(VIEWS), 0.24, f"{note} {describe_incomparable(records)}", keys, beside
    )
    for axes, panel in zip(places, panel_list, strict=True):
        _draw_panel(axes, panel)
    return figure


def _format_gap(record: Score, panel: Panel) -> str:
    return format_estimate(get_estimate(record, "gap"), panel.percent).replace("-", MINUS)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for row, (name, record) in enumerate(zip(panel.names, panel.records, strict=True)):
        on_id, on_ood = (get_estimate(record, view) for view in VIEWS)
        axes.plot([on_id.value, on_ood.value], [row, row], color=BAR, lw=2.2, zorder=1)
        overlap = on_id.low <= on_ood.high and on_ood.low <= on_id.high
        for (view, look), score_estimate, side in zip(VIEWS.items(), (on_id, on_ood), (1, -1), strict=True):
            up = 2.5 * side * overlap
            draw_marks(axes, [score_estimate], [row], look, f"{name}, {view}", hollow=view == "id", up=up)
