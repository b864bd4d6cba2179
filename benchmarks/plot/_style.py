"""The common style of plots: sizes, colours, markers, points with their intervals, and the layout of a page: its legend
above the panels and its note below. Files are cut to what is drawn, so that long names and notes only widen a figure.

Colours are those of Okabe and Ito (Color Universal Design, 2008) without yellow, which is too pale for a line on white;
no two models differ by colour alone. This module does not use pyplot or change global settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from math import inf, isfinite
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

from ..statistics.interval import Interval
from ._panels import Panel, get_estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

FONT = "DejaVu Sans"
"""Distributed with matplotlib, so that a figure is the same on every machine."""

COLUMN, PAGE = 3.3, 6.9
"""Widths in inches: one column of a two-column paper, and both columns."""

TITLE, BODY, NOTE = 9.0, 8.0, 7.0
"""Font sizes in points."""

NAME, HEAD = 32, 30
"""Maximum widths in letters: a name in a legend, and a title or label of a panel one column wide."""

LETTER = 0.62
"""Width of a letter relative to the size of its font, generously."""

MINUS = "\N{MINUS SIGN}"

GREY, BAR, PALE = "#595959", "#b3b3b3", "#d9d9d9"
BLUE, VERMILION, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
COLOURS = (BLUE, VERMILION, GREEN, "#000000", "#E69F00", PURPLE, "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p", "h", "*")
LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)), (0, (3, 3)))

SETTINGS: dict[str, Any] = {
    "font.family": FONT,
    "font.size": BODY,
    "axes.titlesize": TITLE,
    "axes.titlelocation": "left",
    "axes.labelsize": BODY,
    "xtick.labelsize": BODY,
    "ytick.labelsize": BODY,
    "legend.fontsize": BODY,
    "legend.frameon": False,
    "legend.borderpad": 0.2,
    "legend.columnspacing": 1.2,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.0,
    "errorbar.capsize": 1.5,
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "savefig.bbox": "tight",
    "savefig.pad_inches": 0.03,
    # A model's name may be "$x$", which must not be parsed as mathematics.
    "text.parse_math": False,
    # TrueType outlines, which journals accept, and identifiers that are the same in every run.
    "pdf.fonttype": 42,
    "svg.hashsalt": "farshift",
}


@dataclass(frozen=True)
class Look:
    """Colour and marker of one series. Up to twelve series differ by their markers alone."""

    colour: str
    marker: str
    line: Any = "-"


VIEWS = {"id": Look(BLUE, "o", "-"), "ood": Look(VERMILION, "D", "--")}
"""The looks of ID and OOD in plots where colours distinguish these two; ID is also hollow."""


def assign_looks(names: Sequence[str]) -> dict[str, Look]:
    """Assign a look to each name, in order; a name has the same look in every panel."""
    unique = list(dict.fromkeys(names))
    styles = (islice(cycle(these), len(unique)) for these in (COLOURS, MARKERS, LINES))
    return {name: Look(*look) for name, *look in zip(unique, *styles, strict=True)}


def make_legend_key(look: Look, label: str, *, hollow: bool = False, line: bool = True) -> Line2D:
    """Make the legend entry for a look: its marker, and its line if `line`."""
    from matplotlib.lines import Line2D

    line_style, face = look.line if line else "none", get_marker_face(look, hollow)
    return Line2D([], [], color=look.colour, ls=line_style, marker=look.marker, label=label, **face)


def get_marker_face(look: Look, hollow: bool) -> dict[str, Any]:
    """Return the fill of a marker."""
    return {"markerfacecolor": "white" if hollow else look.colour, "markeredgecolor": look.colour}


def draw_marks(
    axes: Axes,
    x: Sequence[float] | Sequence[Interval],
    y: Sequence[float] | Sequence[Interval],
    look: Look,
    label: str,
    *,
    hollow: bool = False,
    up: float = 0.0,
) -> None:
    """Draw points with their intervals. Each coordinate is a number, or an estimate that is drawn with error bars along
    that axis. up: points on the page by which they are moved, so that bars at the same position do not overlap."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    axes.errorbar(
        [_get_value(item) for item in x],
        [_get_value(item) for item in y],
        xerr=_compute_reach(x),
        yerr=_compute_reach(y),
        fmt=look.marker,
        color=look.colour,
        elinewidth=0.9,
        label=label,
        transform=axes.transData + ScaledTranslation(0, up / 72, figure.dpi_scale_trans),
        zorder=3,
        **get_marker_face(look, hollow),
    )


def _get_value(item: float | Interval) -> float:
    return float(item if isinstance(item, int | float) else item.value)


def _compute_reach(items: Any) -> list[list[float]] | None:
    if isinstance(items[0], int | float):
        return None
    return [[e.value - e.low for e in items], [e.high - e.value for e in items]]


def fold(text: str, letters: int) -> str:
    """Break the text into lines of at most `letters`; a longer word is broken inside."""
    return fill(text, letters, break_on_hyphens=False)


def count_lines(texts: Iterable[str]) -> int:
    """Return the largest number of lines of the texts."""
    return max((text.count("\n") + 1 for text in texts), default=0)


def make_page(wide: float, body: float, note: str, keys: Sequence[Line2D] = ()) -> Figure:
    """Make an empty figure, `wide` inches wide, with `body` inches of height for its panels, the legend of `keys` above
    them and the `note` below; its height is the sum of these."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    note = fold(note, int(72 * wide / (NOTE * LETTER)))
    labels = [str(key.get_label()) for key in keys]
    handle = 2.6 if any(key.get_linestyle() != "None" for key in keys) else 1.0
    # In addition to handle and label, an entry has a space (0.8 em) and its share of the column spacing (1.2 em).
    letters = max((len(line) for label in labels for line in label.splitlines()), default=0)
    columns = max(1, min(len(keys), int(72 * wide / BODY // (LETTER * letters + handle + 2))))
    tall = BODY * 1.25 * -(-len(keys) // columns) * count_lines(labels)
    figure = Figure(figsize=(wide, body + (1.25 * NOTE * count_lines([note]) + tall + 10) / 72), layout="constrained")
    FigureCanvasAgg(figure)
    figure.supxlabel(note, x=4 / (72 * wide), ha="left", fontsize=NOTE, color=GREY)
    if keys:
        figure.legend(handles=list(keys), loc="outside upper center", ncols=columns, handlelength=handle)
    return figure


def compute_extra_height(titles: Iterable[str]) -> float:
    """Return the height in inches that the titles of stacked panels need in addition to one line each."""
    return sum(1.25 * TITLE * text.count("\n") for text in titles) / 72


def make_panel_grid(
    panels: Sequence[Panel], wide: float, height: float, note: str, keys: Sequence[Line2D]
) -> tuple[Figure, list[Axes]]:
    """Make axes with their titles, `height` inches each, for the panels, in two columns if there are several."""
    columns = min(2, len(panels))
    titles = [fold(panel.title, HEAD) for panel in panels]
    rows = -(-len(panels) // columns)
    figure = make_page(PAGE if columns > 1 else wide, height * rows + compute_extra_height(titles), note, keys)
    places = [figure.add_subplot(rows, columns, number + 1) for number in range(len(panels))]
    for axes, title in zip(places, titles, strict=True):
        axes.set_title(title)
    return figure, places


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


def list_interval_ends(estimates: Iterable[Interval]) -> list[float]:
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
    heads, most = (1, 12) if beside else (0, 18)
    fits = max(len(name) for panel in panels for name in panel.names) <= most
    wide, letters = (COLUMN, most) if fits else (PAGE, 40)
    short = [[fold(name, letters) for name in panel.names] for panel in panels]
    titles = [fold(panel.title, HEAD if fits else 2 * HEAD) for panel in panels]
    pitch = max(pitch, (1.25 * BODY * count_lines(name for names in short for name in names) + 4) / 72)
    # A panel's title and score axis need 0.55 inches in addition to its rows.
    heights = [pitch * (len(names) + heads) + 0.1 for names in short]
    figure = make_page(wide, sum(heights) + 0.55 * len(panels) + compute_extra_height(titles), note, keys)
    places = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights).ravel().tolist()
    for number, (axes, panel) in enumerate(zip(places, panels, strict=True)):
        count = len(panel.names)
        axes.set_ylim(count - 0.5, -0.5 - heads)
        axes.set_yticks(range(count), short[number])
        axes.tick_params(axis="y", length=0)
        for row in range(1 - heads, count):
            axes.axhline(row - 0.5, color=PALE, lw=0.5, zorder=0)
        estimates = [get_estimate(record, view) for record in panel.records for view in views]
        set_score_axis(axes, "x", list_interval_ends(estimates), panel.records[0].bounds, panel.percent)
        axes.set_title(titles[number])
        axes.set_xlabel(panel.metric)
        if beside:
            right = axes.secondary_yaxis("right")
            right.set_yticks(range(-1, count), beside[number])
            right.tick_params(length=0)
            right.spines["right"].set_visible(False)
    return figure, places
