"""Reliability diagrams: how often a model is right where it is so confident, on ID and on OOD rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ..scoring.record import Calibration, CalibrationBin, Score
from ..statistics.interval import Estimate
from ._axis import percent_ticks
from ._page import more, page
from ._panels import apart, panels
from ._style import BODY, COLUMN, GREY, PAGE, VIEWS, face, key
from ._text import folded

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TALL, LOW = 2.6, 2.3
"""Inches of a row of diagrams, with names and bars: of one or two rows, and of more, which must fit on a page."""

NOTE = (
    "Points: accuracy against mean confidence, bin by bin; below the dotted line a model is overconfident. Beneath: "
    "the share of the rows in each bin, over all seeds. ECE: expected calibration error as the score has it (the mean "
    "over seeds), or of the bins shown where it has none. n: answered rows, counted over all seeds."
)


def picture(records: Sequence[Score]) -> Figure:
    """For each model the accuracy against the mean confidence of each bin (DeGroot and Fienberg 1983; Guo et al., ICML
    2017), for ID (hollow) and OOD (filled), with the expected calibration error and the number of rows; beneath, the
    share of the rows in each bin.

    Raises `FarshiftError` for a run without class probabilities."""
    if lacking := [f"{record.model} on {record.benchmark}" for record in records if not _views(record)]:
        raise FarshiftError(
            f"{', '.join(lacking)}: no class probabilities, so no calibration: leave it out (recorded baselines keep "
            "none: farshift run gives them)"
        )
    drawn = [
        (panel.title, name, record)
        for panel in panels(records)
        for name, record in zip(panel.names, panel.records, strict=True)
    ]
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    height = TALL if rows < 3 else LOW
    keys = [key(look, view.upper(), hollow=view == "id") for view, look in VIEWS.items()]
    titles = folded([title for title, _, _ in drawn], BODY, 135)
    names = folded([name for _, name, _ in drawn], BODY, 135)
    heads = [f"{names[name]}\n{titles[title]}" for title, name, _ in drawn]
    tallest = [
        max(heads[first : first + columns], key=lambda head: head.count("\n"))
        for first in range(0, len(drawn), columns)
    ]
    # Two lines have their place in the height of a row.
    tall = height * rows + more(tallest, BODY) - 1.25 * BODY * rows / 72
    figure = page(COLUMN if columns == 1 else PAGE, tall, f"{NOTE} {apart(records)}", keys)
    # One grid for all, so that every diagram has the same size.
    cells = figure.add_gridspec(2 * rows, columns, height_ratios=[3, 1] * rows)
    for number, (_, _, record) in enumerate(drawn):
        row, column = divmod(number, columns)
        views = _views(record)
        above = figure.add_subplot(cells[2 * row, column])
        beneath = figure.add_subplot(cells[2 * row + 1, column], sharex=above)
        above.set_title("\n".join([heads[number], *_legend(record, views)]), fontsize=BODY, loc="center")
        _diagram(above, views)
        _bars(beneath, views)
        if column == 0:
            above.set_ylabel("accuracy (%)")
            beneath.set_ylabel("rows (%)")
        if number + columns >= len(drawn):
            beneath.set_xlabel("confidence (%)")
    return figure


def _legend(record: Score, views: Mapping[str, Calibration]) -> list[str]:
    errors = ", ".join(f"{view.upper()} {_error(record, view, found):.3f}" for view, found in views.items())
    counts = ", ".join(f"{view.upper()} {_rows(found):,}" for view, found in views.items())
    return [f"ECE: {errors}", f"n: {counts}"]


def _error(record: Score, view: str, found: Calibration) -> float:
    """The expected calibration error of a view: one number for one run, on the picture as in its score."""
    for name, scored in record.metrics.items():
        estimate = getattr(scored, view)
        if name.partition("@")[0] == "ece" and isinstance(estimate, Estimate):
            return estimate.value
    return found.ece


def _views(record: Score) -> dict[str, Calibration]:
    """The calibration of each view that has one."""
    found = record.calibration or {}
    return {view: found[view] for view in VIEWS if view in found}


def _diagram(axes: Axes, views: Mapping[str, Calibration]) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=(0, (1, 2)), label="perfect calibration")
    for view, found in views.items():
        look, filled = VIEWS[view], _filled(found)
        axes.plot(
            [part.confidence for part in filled],
            [part.accuracy for part in filled],
            color=look.colour,
            ls=look.line,
            marker=look.marker,
            label=view,
            clip_on=False,
            zorder=3,
            **face(look, view == "id"),
        )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_yticks((0, 0.5, 1))
    percent_ticks(axes.yaxis)
    axes.tick_params(bottom=False, labelbottom=False)


def _bars(axes: Axes, views: Mapping[str, Calibration]) -> None:
    from matplotlib.ticker import MaxNLocator

    for number, (view, found) in enumerate(views.items()):
        look, filled = VIEWS[view], _filled(found)
        half = [(part.high - part.low) / 2 for part in filled]
        axes.bar(
            [part.low + number * wide for part, wide in zip(filled, half, strict=True)],
            [part.rows / _rows(found) for part in filled],
            half,
            align="edge",
            label=view,
            edgecolor=look.colour,
            lw=0.6,
            color="white" if view == "id" else look.colour,
        )
    axes.set_xticks((0, 0.5, 1))
    axes.yaxis.set_major_locator(MaxNLocator(2))
    for axis in (axes.xaxis, axes.yaxis):
        percent_ticks(axis)


def _filled(found: Calibration) -> list[CalibrationBin]:
    """The bins that hold rows: an empty one has no accuracy."""
    return [part for part in found.bins if part.rows]


def _rows(found: Calibration) -> int:
    return sum(part.rows for part in found.bins)
