"""Corrupted labels: how many of them a model memorised, how many it corrected, and how well it fits the clean rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ..scoring.record import Score
from ._panels import describe_incomparable, describe_intervals, get_estimate, make_panels
from ._style import BLUE, GREEN, PURPLE, VERMILION, Look, draw_marks, make_legend_key, make_row_axes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KIND = "corrupted-label"

LOOKS = {
    "memorised": Look(VERMILION, "X"),
    "restored": Look(GREEN, "^"),
    "fit_clean": Look(PURPLE, "s"),
    "id": Look(BLUE, "o"),
}
WORDS = {
    "memorised": "memorised (wrong labels predicted)",
    "restored": "restored (true label predicted)",
    "fit_clean": "fit_clean (correct labels fitted)",
    "id": "ID (unseen rows)",
}


def picture(records: Sequence[Score]) -> Figure:
    """Plot one row per model, the most restored on top: the share of wrong labels memorised, of wrong labels restored,
    of correctly labelled training rows fitted, and the ID score, with 95 % t intervals.

    Raises `FarshiftError` for a benchmark with another kind of shift."""
    if others := sorted({f"{r.benchmark} ({r.kind})" for r in records if r.kind != KIND}):
        raise FarshiftError(f"{', '.join(others)}: the plot noise requires {KIND} benchmarks: omit the others")
    panel_list = [panel.by("restored") for panel in make_panels(records)]
    keys = [make_legend_key(look, WORDS[view], hollow=view == "id", line=False) for view, look in LOOKS.items()]
    note = f"Bars: {describe_intervals(records)}. {describe_incomparable(records)}"
    figure, places = make_row_axes(panel_list, list(LOOKS), 0.4, note, keys)
    for axes, panel in zip(places, panel_list, strict=True):
        for row, (name, record) in enumerate(zip(panel.names, panel.records, strict=True)):
            for (view, look), up in zip(LOOKS.items(), (9.0, 3.0, -3.0, -9.0), strict=True):
                score_estimate = get_estimate(record, view)
                draw_marks(axes, [score_estimate], [row], look, f"{name}, {view}", hollow=view == "id", up=up)
    return figure
