"""Reading pictures back: what the artists of a figure say, in the coordinates of the data."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from matplotlib.axes import Axes
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text


def points(axes: Axes) -> dict[str, list[dict[str, Any]]]:
    """The points of each labelled series, in their order: `x`, `y`, and the ends of the bars along `x` and `y`."""
    result = {}
    for series in axes.containers:
        if isinstance(series, ErrorbarContainer):
            line, _, bars = series
            rows = [{"x": x, "y": y} for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
            along = [name for name, has in (("x bar", series.has_xerr), ("y bar", series.has_yerr)) if has]
            for name, collection in zip(along, bars, strict=True):
                column = 0 if name == "x bar" else 1
                for row, segment in zip(rows, collection.get_segments(), strict=True):
                    row[name] = sorted(segment[:, column].tolist())
            result[series.get_label()] = rows
    return result


def line(axes: Axes, label: str) -> Line2D:
    """The one line of that label."""
    (result,) = [each for each in axes.lines if each.get_label() == label]
    return result


def note(figure: Figure) -> str:
    """The text beneath the panels, in one line."""
    return figure.get_supxlabel().replace("\n", " ")


def names(figure: Figure) -> list[str]:
    """The names in the figure's legend."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


def words(figure: Figure) -> list[Text]:
    """Every text that is drawn: no empty one, and no tick's beyond the limits of its axis."""
    hidden = set()
    for axes in figure.findobj(Axes):
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    hidden |= {tick.label1, tick.label2}
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text() and text not in hidden]


def faults(figure: Figure) -> list[str]:
    """Texts that are cut by the figure's edge, that overlap another, or that are too small to read, in the figure as it
    is drawn into a file."""
    figure.draw_without_rendering()
    boxes = [(text.get_text(), text.get_window_extent(), text.get_fontsize()) for text in words(figure)]
    edge = figure.bbox
    result = [f"small: {text!r}" for text, _, size in boxes if size < 7]
    result += [
        f"cut: {text!r}"
        for text, box, _ in boxes
        if box.x0 < edge.x0 or box.y0 < edge.y0 or box.x1 > edge.x1 or box.y1 > edge.y1
    ]
    result += [
        f"overlap: {item!r} and {other!r}"
        for (item, first, _), (other, second, _) in combinations(boxes, 2)
        if first.padded(-0.5).overlaps(second.padded(-0.5))
    ]
    return result
