"""The common style of plots: sizes, colours, markers, points with their intervals, and text broken to a width.

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
from typing import TYPE_CHECKING, Any

from ..statistics.interval import HasInterval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.transforms import Transform

FONT = "DejaVu Sans"
"""Distributed with matplotlib, so that a figure is the same on every machine."""

COLUMN, PAGE = 3.3, 6.9
"""Widths in inches: one column of a two-column paper, and both columns."""

TITLE, BODY, NOTE = 9.0, 8.0, 7.0
"""Font sizes in points."""

NAME, HEAD = 170.0, 185.0
"""Maximum widths in points: a name in a legend, and a title or label of a panel one column wide."""

NAME_LINES = 6
"""Maximum number of lines of a name."""

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
    nudge: tuple[float, float] = (0.0, 0.0),
) -> None:
    """Draw points with their intervals. Each coordinate is a number, or an estimate that is drawn with error bars along
    that axis. `nudge`: see `nudge_transform`."""
    axes.errorbar(
        [_get_value(item) for item in x],
        [_get_value(item) for item in y],
        xerr=_compute_reach(x),
        yerr=_compute_reach(y),
        fmt=look.marker,
        color=look.colour,
        elinewidth=0.9,
        label=label,
        transform=nudge_transform(axes, nudge),
        zorder=3,
        **get_marker_face(look, hollow),
    )


def nudge_transform(axes: Axes, nudge: tuple[float, float]) -> Transform:
    """Return the transform of data coordinates, offset by `nudge` points on the page, so that bars at the same position
    do not overlap; the data are not changed."""
    from matplotlib.transforms import ScaledTranslation

    figure = axes.get_figure(root=True)
    assert figure is not None
    return axes.transData + ScaledTranslation(nudge[0] / 72, nudge[1] / 72, figure.dpi_scale_trans)


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
    blank. Of a name of more than `NAME_LINES` lines the middle is left out, with a number to keep names distinct."""
    texts = {}
    for number, name in enumerate(dict.fromkeys(names)):
        lines = fold_text(name, size, limit, "-_/.,:@+ ")
        if len(lines) > NAME_LINES:
            lines = [*lines[:2], f"… #{number + 1}", *lines[-2:]]
        texts[name] = "\n".join(lines)
    return texts


def count_most_lines(texts: Iterable[str]) -> int:
    """Return the largest number of lines of the texts."""
    return max((text.count("\n") + 1 for text in texts), default=0)
