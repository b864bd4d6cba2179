"""Corrupted labels: what a model memorised of them, what it put right, and what it learnt from the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ..scoring.record import Score
from ._panels import apart, estimate, meaning_of_intervals, panels
from ._rows import rows
from ._style import BLUE, GREEN, PURPLE, VERMILION, Look, key, marks

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
    "memorised": "memorised (wrong labels given back)",
    "restored": "restored (wrong labels put right)",
    "fit_clean": "fit_clean (right labels learnt)",
    "id": "ID (rows never seen)",
}


def picture(records: Sequence[Score]) -> Figure:
    """One row per model, the most restored on top: the share of wrong labels memorised, of wrong labels restored, of
    rightly labelled training rows fitted, and the ID score, with 95 % t intervals.

    Raises `FarshiftError` for a benchmark of another kind."""
    if others := sorted({f"{r.benchmark} ({r.kind})" for r in records if r.kind != KIND}):
        raise FarshiftError(f"{', '.join(others)}: the picture noise is of {KIND} benchmarks alone: leave it out")
    shown = [panel.by("restored") for panel in panels(records)]
    keys = [key(look, WORDS[view], hollow=view == "id", line=False) for view, look in LOOKS.items()]
    note = f"Bars: {meaning_of_intervals(records)}. {apart(records)}"
    figure, places = rows(shown, list(LOOKS), 0.4, note, keys)
    for axes, panel in zip(places, shown, strict=True):
        for row, (name, record) in enumerate(zip(panel.names, panel.records, strict=True)):
            for (view, look), up in zip(LOOKS.items(), (9.0, 3.0, -3.0, -9.0), strict=True):
                found = estimate(record, view)
                marks(axes, [found], [row], look, f"{name}, {view}", hollow=view == "id", nudge=(0.0, up))
    return figure
