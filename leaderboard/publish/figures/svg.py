"""Building blocks of figures: SVG elements, numeric axes, and the figure with its data table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Literal

from ....core.listings.untrusted_text import LINES, escape_untrusted

WIDTH, HEIGHT = 560, 330
"""Size of a figure in its own units; pages scale it."""

LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 44
"""Margins around the axes."""

SERIES = 7
"""Number of colours and marker shapes in the style sheet and `draw_marker`."""

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Figure:
    """A figure: its SVG, which needs no escaping; its title and caption; and its data, as `head` and `rows` of a table.
    series: number and name of each series, which differ by colour and shape."""

    svg: str
    title: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    series: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Axis:
    """A linear axis that maps the values `low` to `high` to `first` to `last` in the figure's units."""

    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """Return the position of a value, clipped to the ends."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round_coordinate(self.first + (self.last - self.first) * min(1.0, max(0.0, share)))


def make_x_axis(low: float, high: float, width: int = WIDTH) -> Axis:
    """Return the axis along the bottom."""
    return Axis(low, high, LEFT, width - RIGHT)


def make_y_axis(low: float, high: float, height: int = HEIGHT) -> Axis:
    """Return the axis along the left side, which increases upwards."""
    return Axis(low, high, height - BOTTOM, TOP)


def round_coordinate(value: float) -> float:
    """Round a coordinate to one decimal, without negative zero."""
    return round(value, 1) + 0.0


def format_coordinate(value: float) -> str:
    """Format a coordinate for SVG with as few characters as possible."""
    return f"{round_coordinate(value):g}"


def escape_text(value: str) -> str:
    """Escape untrusted text for SVG and HTML."""
    return escape(escape_untrusted(value, LINES))


def draw_label(x: float, y: float, content: str, anchor: Anchor = "middle", name: str = "") -> str:
    """Return a text element at a position."""
    kind = f' class="{name}"' if name else ""
    return (
        f'<text{kind} x="{format_coordinate(x)}" y="{format_coordinate(y)}" '
        f'text-anchor="{anchor}">{escape_text(content)}</text>'
    )


def draw_line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a straight line with a CSS class."""
    ends = (
        f'x1="{format_coordinate(x1)}" y1="{format_coordinate(y1)}" x2="{format_coordinate(x2)}" '
        f'y2="{format_coordinate(y2)}"'
    )
    return f'<line class="{name}" {ends}/>'


def draw_path(name: str, points: Sequence[tuple[float, float]]) -> str:
    """Return a path through points."""
    return (
        f'<path class="{name}" d="M{" ".join(f"{format_coordinate(x)},{format_coordinate(y)}" for x, y in points)}"/>'
    )


def make_step_corners(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of a step line, which keeps each height until the next point."""
    corners = list(points[:1])
    for (_, before), (x, y) in pairwise(points):
        corners += [(x, before), (x, y)]
    return corners


def draw_marker(series: int, x: float, y: float, tooltip: str = "", hollow: bool = False) -> str:
    """Return the marker of a series, with its colour and shape. `tooltip` is shown on hover."""
    shape = series % SERIES
    size = 4.5
    outlines = [
        "",
        f"M{format_coordinate(x - size)},{format_coordinate(y - size)}h{2 * size:g}v{2 * size:g}h-{2 * size:g}z",
        f"M{format_coordinate(x)},{format_coordinate(y - 5.5)}l5.2,9.5h-10.4z",
        f"M{format_coordinate(x)},{format_coordinate(y - 6)}l6,6l-6,6l-6,-6z",
        f"M{format_coordinate(x)},{format_coordinate(y + 5.5)}l5.2,-9.5h-10.4z",
        f"M{format_coordinate(x - 1.8)},{format_coordinate(y - 5.5)}h3.6v3.7h3.7v3.6h-3.7v3.7h-3.6v-3.7h-3.7v-3.6h3.7z",
        f"M{format_coordinate(x - 2.5)},{format_coordinate(y - 5)}h5l3,5l-3,5h-5l-3,-5z",
    ]
    name = f"c{shape} hollow" if hollow else f"c{shape} mark"
    title = f"<title>{escape_text(tooltip)}</title>" if tooltip else ""
    if shape == 0:
        return (
            f'<circle class="{name}" cx="{format_coordinate(x)}" cy="{format_coordinate(y)}" r="4.5">{title}</circle>'
        )
    return f'<path class="{name}" d="{outlines[shape]}">{title}</path>'


def draw_legend_key(series: int) -> str:
    """Return the marker of a series as a small SVG for a legend."""
    return (
        '<svg class="key" width="16" height="16" viewBox="0 0 16 16" '
        f'aria-hidden="true">{draw_marker(series, 8, 8)}</svg>'
    )


def draw_svg(content: Sequence[str], title: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    """Return the complete SVG, with its title for screen readers."""
    body = "".join(content)
    return (
        f'<svg class="figure" viewBox="0 0 {width} {height}" role="img" aria-label="{escape_text(title)}">'
        f"<title>{escape_text(title)}</title>{body}</svg>"
    )


def list_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return at most `most` round values between `low` and `high`, in steps of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough * (1 - 1e-9))
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [round(number * step, 10) + 0.0 for number in range(first, last + 1)]


def draw_axes(
    x: Axis, y: Axis, names: tuple[str, str], x_ticks: Sequence[tuple[float, str]], y_ticks: Sequence[tuple[float, str]]
) -> list[str]:
    """Return the axes with ticks and names: horizontal grid lines, labels below and to the left."""
    elements = []
    for value, tick_label in y_ticks:
        elements.append(draw_line("grid", x.first, y.at(value), x.last, y.at(value)))
        elements.append(draw_label(x.first - 6, y.at(value) + 4, tick_label, "end"))
    elements.append(draw_line("axis", x.first, y.first, x.last, y.first))
    for value, tick_label in x_ticks:
        elements.append(draw_line("axis", x.at(value), y.first, x.at(value), y.first + 4))
        elements.append(draw_label(x.at(value), y.first + 17, tick_label, _choose_anchor(x, x.at(value), tick_label)))
    middle = (y.first + y.last) / 2
    elements.append(draw_label((x.first + x.last) / 2, y.first + 36, names[0], name="name"))
    elements.append(
        f'<text class="name" transform="translate(14 {format_coordinate(middle)}) rotate(-90)" text-anchor="middle">'
        f"{escape_text(names[1])}</text>"
    )
    return elements


def _choose_anchor(x: Axis, at: float, tick_label: str) -> Anchor:
    """Choose the anchor of a tick label, so that long labels stay inside the figure."""
    half = 3.5 * len(tick_label)
    return "end" if at + half > x.last + RIGHT else "start" if at - half < x.first - LEFT else "middle"
