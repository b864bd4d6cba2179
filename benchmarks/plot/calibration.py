"""Reliability diagrams: accuracy as a function of confidence, on ID and on OOD rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ..scoring.record import Calibration, Score
from ..statistics.interval import Estimate
from ._panels import describe_incomparable, make_panels
from ._style import (
    BODY,
    COLUMN,
    GREY,
    PAGE,
    VIEWS,
    compute_extra_height,
    fold_names,
    get_marker_face,
    make_legend_key,
    make_page,
    set_percent_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TALL, LOW = 2.6, 2.3
"""Height in inches of a row of diagrams with names and bars: for one or two rows, and for more, to fit on a page."""

NOTE = (
    "Points: accuracy against mean confidence in each bin; below the dotted line a model is overconfident. Bottom: "
    "the share of rows in each bin, over all seeds. ECE: expected calibration error from the score (mean over seeds), "
    "or of the bins shown if the score has none. n: number of predictions, over all seeds."
)


def picture(records: Sequence[Score]) -> Figure:
    """Plot for each model the accuracy against the mean confidence of each bin (DeGroot and Fienberg 1983; Guo et al.,
    ICML 2017), for ID (hollow) and OOD (filled), with the expected calibration error and the number of rows; below, the
    share of rows in each bin.

    Raises `FarshiftError` for a run without class probabilities."""
    if lacking := [f"{record.model} on {record.benchmark}" for record in records if not _get_views(record)]:
        raise FarshiftError(
            f"{', '.join(lacking)}: calibration requires class probabilities: omit this run (recorded baselines have "
            "none; train with farshift run)"
        )
    drawn = [
        (panel.title, name, record)
        for panel in make_panels(records)
        for name, record in zip(panel.names, panel.records, strict=True)
    ]
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    height = TALL if rows < 3 else LOW
    keys = [make_legend_key(look, view.upper(), hollow=view == "id") for view, look in VIEWS.items()]
    titles = fold_names([title for title, _, _ in drawn], BODY, 135)
    names = fold_names([name for _, name, _ in drawn], BODY, 135)
    heads = [f"{names[name]}\n{titles[title]}" for title, name, _ in drawn]
    tallest = [
        max(heads[first : first + columns], key=lambda head: head.count("\n"))
        for first in range(0, len(drawn), columns)
    ]
    # The height of a row has space for two lines.
    tall = height * rows + compute_extra_height(tallest, BODY) - 1.25 * BODY * rows / 72
    figure = make_page(COLUMN if columns == 1 else PAGE, tall, f"{NOTE} {describe_incomparable(records)}", keys)
    # One grid for all panels, so that every diagram has the same size.
    cells = figure.add_gridspec(2 * rows, columns, height_ratios=[3, 1] * rows)
    for number, (_, _, record) in enumerate(drawn):
        row, column = divmod(number, columns)
        views = _get_views(record)
        above = figure.add_subplot(cells[2 * row, column])
        beneath = figure.add_subplot(cells[2 * row + 1, column], sharex=above)
        above.set_title("\n".join([heads[number], *_format_legend(record, views)]), fontsize=BODY, loc="center")
        _draw_diagram(above, views)
        _draw_bars(beneath, views)
        if column == 0:
            above.set_ylabel("accuracy (%)")
            beneath.set_ylabel("rows (%)")
        if number + columns >= len(drawn):
            beneath.set_xlabel("confidence (%)")
    return figure


def _format_legend(record: Score, views: Mapping[str, Calibration]) -> list[str]:
    errors = ", ".join(
        f"{view.upper()} {_get_calibration_error(record, view, calibration):.3f}" for view, calibration in views.items()
    )
    counts = ", ".join(f"{view.upper()} {_count_rows(calibration):,}" for view, calibration in views.items())
    return [f"ECE: {errors}", f"n: {counts}"]


def _get_calibration_error(record: Score, view: str, calibration: Calibration) -> float:
    """Return the expected calibration error of a view, the same number as in the run's score."""
    for name, scored in record.metrics.items():
        estimate = getattr(scored, view)
        if name.partition("@")[0] == "ece" and isinstance(estimate, Estimate):
            return estimate.value
    return calibration.ece


def _get_views(record: Score) -> dict[str, Calibration]:
    """Return the calibration of each view that has one."""
    calibrations = record.calibration or {}
    return {view: calibrations[view] for view in VIEWS if view in calibrations}


def _draw_diagram(axes: Axes, views: Mapping[str, Calibration]) -> None:
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=(0, (1, 2)), label="perfect calibration")
    for view, calibration in views.items():
        look, filled = VIEWS[view], calibration.bins
        axes.plot(
            [part.confidence for part in filled],
            [part.accuracy for part in filled],
            color=look.colour,
            ls=look.line,
            marker=look.marker,
            label=view,
            clip_on=False,
            zorder=3,
            **get_marker_face(look, view == "id"),
        )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_yticks((0, 0.5, 1))
    set_percent_ticks(axes.yaxis)
    axes.tick_params(bottom=False, labelbottom=False)


def _draw_bars(axes: Axes, views: Mapping[str, Calibration]) -> None:
    from matplotlib.ticker import MaxNLocator

    for number, (view, calibration) in enumerate(views.items()):
        look, filled = VIEWS[view], calibration.bins
        half = [(part.high - part.low) / 2 for part in filled]
        axes.bar(
            [part.low + number * wide for part, wide in zip(filled, half, strict=True)],
            [part.rows / _count_rows(calibration) for part in filled],
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
        set_percent_ticks(axis)


def _count_rows(calibration: Calibration) -> int:
    return sum(part.rows for part in calibration.bins)
