"""Figure layout: its size, the legend above the panels and the note below, score axes, and rows of models."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING, Literal

from ..statistics.interval import HasInterval
from ._panels import Panel, get_estimate
from ._style import BODY, COLUMN, GREY, NOTE, PAGE, PALE, TITLE, count_most_lines, fold_names, fold_text, measure_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


def make_page(wide: float, body: float, note: str, keys: Sequence[Line2D] = ()) -> Figure:
    """Make an empty figure, `wide` inches wide, with `body` inches of height for its panels, the legend of `keys` above
    them and the wrapped `note` below; its height is the sum of these."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    lines = fold_text(note, NOTE, 72 * wide - 8)
    handle = 2.6 if any(item.get_linestyle() != "None" for item in keys) else 1.0
    columns, rows = _fit_legend([str(item.get_label()) for item in keys], 72 * wide, handle)
    tall = 1.5 * rows + 1.2 * rows * (count_most_lines(str(item.get_label()) for item in keys) - 1)
    inches = body + (compute_note_height(lines) + BODY * tall + 10) / 72
    figure = Figure(figsize=(wide, inches), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.04, h_pad=0.04)  # type: ignore[union-attr, call-arg]
    figure.supxlabel("\n".join(lines), x=4 / (72 * wide), ha="left", fontsize=NOTE, color=GREY)
    if keys:
        figure.legend(handles=list(keys), loc="outside upper center", ncols=columns, handlelength=handle)
    return figure


def compute_note_height(lines: Sequence[str]) -> float:
    """Return the height of the note's lines in points."""
    return 1.25 * NOTE * len(lines)


def compute_extra_height(titles: Iterable[str], size: float = TITLE) -> float:
    """Return the height in inches that the titles of stacked panels need in addition to one line each."""
    return sum(1.25 * size * text.count("\n") for text in titles) / 72


def _fit_legend(labels: Sequence[str], wide: float, handle: float) -> tuple[int, int]:
    """Return how many columns and rows of legend entries, with handles of `handle` em, fit into `wide` points."""
    if not labels:
        return 0, 0
    # In addition to handle and label, an entry has a space (0.8 em) and its share of the column spacing (1.2 em).
    widest = max(measure_width(line, BODY) for label in labels for line in label.splitlines()) + (handle + 2) * BODY
    columns = max(1, min(len(labels), int(wide // widest)))
    return columns, -(-len(labels) // columns)


def make_axes_grid(figure: Figure, panels: int, columns: int) -> list[Axes]:
    """Make `panels` axes in rows of `columns`."""
    axes = figure.subplots(-(-panels // columns), columns, squeeze=False).ravel().tolist()
    for unused in axes[panels:]:
        unused.remove()
    return axes[:panels]


def set_score_axis(
    axes: Axes, along: Literal["x", "y"], values: Sequence[float], bounds: Sequence[float | None] | None, percent: bool
) -> None:
    """Set limits that include all `values` (scores and interval ends) and at least a tenth of the scale, and ticks, in
    percent if the score is shown in percent."""
    from matplotlib.ticker import MaxNLocator

    low, high = compute_axis_window(values, bounds)
    margin = 0.04 * (high - low)
    axis = axes.xaxis if along == "x" else axes.yaxis
    (axes.set_xlim if along == "x" else axes.set_ylim)(low - margin, high + margin)
    axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10], min_n_ticks=3))
    if percent:
        set_percent_ticks(axis)


def set_percent_ticks(axis: Axis) -> None:
    """Set ticks for a share, labelled in percent."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share + 0.0:.4g}"))


def compute_axis_window(values: Sequence[float], bounds: Sequence[float | None] | None) -> tuple[float, float]:
    """Return the range of the values, widened to a tenth of the scale (of the largest value, if the metric has no
    finite bounds), but not beyond the metric's bounds, so that no tick reads 101 %."""
    low, high = min(values), max(values)
    floor, ceiling = bounds or (None, None)
    floor, ceiling = -inf if floor is None else floor, inf if ceiling is None else ceiling
    scale = ceiling - floor if isfinite(ceiling - floor) else max(abs(low), abs(high))
    least = 0.1 * scale or 1.0
    if high - low < least:
        low = min(max((low + high - least) / 2, floor), ceiling - least)
        high = low + least
    return low, high


def list_interval_ends(estimates: Iterable[HasInterval]) -> list[float]:
    """Return the ends of the intervals, which the limits of an axis must include."""
    return [end for estimate in estimates for end in (estimate.low, estimate.high)]


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
