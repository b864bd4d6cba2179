"""The common style of plots: sizes, colours, markers, points with their intervals, text broken to a width, and the
layout of a page: its legend above the panels and its note below.

Colours are those of Okabe and Ito (Color Universal Design, 2008) without yellow, which is too pale for a line on white;
no two models differ by colour alone. This module does not use pyplot or change global settings.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import cycle, islice
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal

from ..statistics.interval import HasInterval
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

NAME, HEAD = 170.0, 185.0
"""Maximum widths in points: a name in a legend, and a title or label of a panel one column wide."""

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
    # Without hinting, glyph widths do not depend on the resolution, so text that was measured to fit does fit.
    "text.hinting": "none",
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
    x: Sequence[float] | Sequence[HasInterval],
    y: Sequence[float] | Sequence[HasInterval],
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


def _get_value(item: float | HasInterval) -> float:
    return float(item if isinstance(item, int | float) else item.value)


def _compute_reach(items: Any) -> list[list[float]] | None:
    if isinstance(items[0], int | float):
        return None
    return [[e.value - e.low for e in items], [e.high - e.value for e in items]]


@lru_cache(maxsize=4096)
def measure_width(text: str, size: float) -> float:
    """Return the width of one line of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    wide, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(family=FONT, size=size), ismath=False)
    return float(wide)


def fold_text(text: str, size: float, limit: float, ends: str = " ") -> list[str]:
    """Break the text after the characters `ends` into lines of at most `limit` points; a longer word is broken inside.
    A non-breaking space is no end."""
    lines = [""]
    for piece in re.findall(rf"[^{ends}]*[{ends}]+|[^{ends}]+", text):
        if measure_width((lines[-1] + piece).rstrip(), size) <= limit:
            lines[-1] += piece
            continue
        lines += [piece] if lines[-1] else []
        lines[-1] = lines[-1] or piece
        while measure_width((line := lines[-1]).rstrip(), size) > limit and len(line) > 1:
            fits = bisect_left(range(1, len(line)), True, key=lambda count: measure_width(line[:count], size) > limit)
            lines[-1:] = [line[: max(1, fits)], line[max(1, fits) :]]
    return [line.strip() for line in lines]


def fold_names(names: Iterable[str], size: float, limit: float) -> dict[str, str]:
    """Return each name broken into lines of at most `limit` points, preferably after a hyphen, underscore, slash or
    blank."""
    return {name: "\n".join(fold_text(name, size, limit, "-_/.,:@+ ")) for name in names}


def count_most_lines(texts: Iterable[str]) -> int:
    """Return the largest number of lines of the texts."""
    return max((text.count("\n") + 1 for text in texts), default=0)


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
    return [figure.add_subplot(-(-panels // columns), columns, number + 1) for number in range(panels)]


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
