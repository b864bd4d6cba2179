"""Reliability diagrams: accuracy as a function of confidence, on ID and on OOD rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ..scoring.record import Calibration, Score
from ..statistics.interval import is_measured
from ._panels import describe_incomparable, make_panels
from ._style import (
    BODY,
    COLUMN,
    GREY,
    PAGE,
    VIEWS,
    count_lines,
    fold,
    get_marker_face,
    make_legend_key,
    make_page,
    set_percent_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

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
        ("\n".join([fold(name, 26), fold(panel.title, 26), *_describe_views(record)]), _get_views(record))
        for panel in make_panels(records)
        for name, record in zip(panel.names, panel.records, strict=True)
    ]
    columns = min(3, len(drawn))
    rows = -(-len(drawn) // columns)
    keys = [make_legend_key(look, view.upper(), hollow=view == "id") for view, look in VIEWS.items()]
    tall = rows * (1.8 + 1.25 * BODY * count_lines(head for head, _ in drawn) / 72)
    figure = make_page(COLUMN if columns == 1 else PAGE, tall, f"{NOTE} {describe_incomparable(records)}", keys)
    # One grid for all panels, so that every diagram has the same size.
    cells = figure.add_gridspec(2 * rows, columns, height_ratios=[3, 1] * rows)
    for number, (head, views) in enumerate(drawn):
        row, column = divmod(number, columns)
        above = figure.add_subplot(cells[2 * row, column], xlim=(0, 1), ylim=(0, 1))
        beneath = figure.add_subplot(cells[2 * row + 1, column], sharex=above)
        above.set_title(head, fontsize=BODY, loc="center")
        _draw_views(above, beneath, views)
        if column == 0:
            above.set_ylabel("accuracy (%)")
            beneath.set_ylabel("rows (%)")
        if number + columns >= len(drawn):
            beneath.set_xlabel("confidence (%)")
    return figure


def _get_views(record: Score) -> dict[str, Calibration]:
    """Return the calibration of each view that has one."""
    calibrations = record.calibration or {}
    return {view: calibrations[view] for view in VIEWS if view in calibrations}


def _describe_views(record: Score) -> list[str]:
    """Return the expected calibration error of each view, as in the run's score if it has it, and its rows."""
    views = _get_views(record)
    scored = next((scores for name, scores in record.metrics.items() if name.partition("@")[0] == "ece"), None)
    estimates = {view: getattr(scored, view, None) for view in views}
    errors = {view: error.value if is_measured(error) else views[view].ece for view, error in estimates.items()}
    counts = {view: sum(part.rows for part in calibration.bins) for view, calibration in views.items()}
    return [
        f"ECE: {', '.join(f'{view.upper()} {error:.3f}' for view, error in errors.items())}",
        f"n: {', '.join(f'{view.upper()} {count:,}' for view, count in counts.items())}",
    ]


def _draw_views(above: Axes, beneath: Axes, views: Mapping[str, Calibration]) -> None:
    from matplotlib.ticker import MaxNLocator

    above.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=(0, (1, 2)), label="perfect calibration")
    for number, (view, calibration) in enumerate(views.items()):
        look, bins = VIEWS[view], calibration.bins
        above.plot(
            [part.confidence for part in bins],
            [part.accuracy for part in bins],
            color=look.colour,
            ls=look.line,
            marker=look.marker,
            label=view,
            clip_on=False,
            zorder=3,
            **get_marker_face(look, view == "id"),
        )
        total = sum(part.rows for part in bins)
        half = [(part.high - part.low) / 2 for part in bins]
        beneath.bar(
            [part.low + number * wide for part, wide in zip(bins, half, strict=True)],
            [part.rows / total for part in bins],
            half,
            align="edge",
            label=view,
            edgecolor=look.colour,
            lw=0.6,
            color="white" if view == "id" else look.colour,
        )
    above.set_yticks((0, 0.5, 1))
    above.tick_params(bottom=False, labelbottom=False)
    beneath.set_xticks((0, 0.5, 1))
    beneath.yaxis.set_major_locator(MaxNLocator(2))
    for axis in (above.yaxis, beneath.xaxis, beneath.yaxis):
        set_percent_ticks(axis)
