"""The gap: each model's ID and OOD scores, joined, and the gap between them with its own interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..scoring.record import Score
from ._panels import Panel, apart, estimate, in_words, meaning_of_intervals, panels
from ._rows import rows
from ._style import BAR, MINUS, VIEWS, key, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def picture(records: Sequence[Score]) -> Figure:
    """One row per model, the best OOD score on top: ID (hollow circle) and OOD (filled diamond), joined, with 95 % t
    intervals, and at the right the gap, in points of percent where the metric is in percent, with its interval."""
    shown = [panel.by("ood") for panel in panels(records)]
    note = f"Bars and brackets: {meaning_of_intervals(records)}. The gap, ID to OOD, has an interval of its own."
    keys = [key(VIEWS[view], view.upper(), hollow=view == "id", line=False) for view in VIEWS]
    beside = [[_head(panel), *(_words(record, panel) for record in panel.records)] for panel in shown]
    figure, places = rows(shown, list(VIEWS), 0.24, f"{note} {apart(records)}", keys, beside)
    for axes, panel in zip(places, shown, strict=True):
        _draw(axes, panel)
    return figure


def _head(panel: Panel) -> str:
    return "gap (points)" if panel.percent else "gap"


def _words(record: Score, panel: Panel) -> str:
    return in_words(estimate(record, "gap"), panel.percent).replace("-", MINUS)


def _draw(axes: Axes, panel: Panel) -> None:
    for row, (name, record) in enumerate(zip(panel.names, panel.records, strict=True)):
        on_id, on_ood = (estimate(record, view) for view in VIEWS)
        axes.plot([on_id.value, on_ood.value], [row, row], color=BAR, lw=2.2, zorder=1)
        overlap = on_id.low <= on_ood.high and on_ood.low <= on_id.high
        for (view, look), found, side in zip(VIEWS.items(), (on_id, on_ood), (1, -1), strict=True):
            nudge = (0.0, 2.5 * side * overlap)
            marks(axes, [found], [row], look, f"{name}, {view}", hollow=view == "id", nudge=nudge)
