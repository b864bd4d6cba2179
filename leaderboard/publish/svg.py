"""Figures of the pages: a plot with numeric axes, drawn as SVG, and the finished figure with its data table.

Colours come from the style sheet, so that figures follow the page's light or dark mode; no two series differ by colour
alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

from ...core.text import LINES, escape_untrusted

WIDTH, HEIGHT = 560, 330
"""Size of a figure in its own units; pages scale it."""
MARGINS = 14, 16, 44, 56
"""At the top, right, bottom and left, in the same units."""

_MARKERS = (
    "M-4.5,0a4.5,4.5 0 1,0 9,0a4.5,4.5 0 1,0 -9,0z",
    "M-4.5,-4.5h9v9h-9z",
    "M0,-5.5l5.2,9.5h-10.4z",
    "M0,-6l6,6l-6,6l-6,-6z",
    "M0,5.5l5.2,-9.5h-10.4z",
    "M-1.8,-5.5h3.6v3.7h3.7v3.6h-3.7v3.7h-3.6v-3.7h-3.7v-3.6h3.7z",
    "M-2.5,-5h5l3,5l-3,5h-5l-3,-5z",
)
"""The outline of each series' marker around the origin."""

SERIES = len(_MARKERS)
"""Number of series that differ by colour (in the style sheet) and marker."""

Point = tuple[float, float]
Ticks = Sequence[tuple[float, str]]
Attributes = Mapping[str, float | str]


@dataclass(frozen=True)
class Figure:
    """A figure: its SVG, which needs no escaping; its title and caption; and its data, as `head` and `rows` of a table.
    series: number and name of each series, which differ by colour and shape."""

    svg: str
    title: str
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    series: Sequence[tuple[int, str]] = ()


@dataclass(frozen=True)
class Axis:
    """A linear axis that maps the values `low` to `high` to `first` to `last` in the figure's units."""

    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """Return the position of a value with one decimal, clipped to the ends."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(self.first + (self.last - self.first) * min(1.0, max(0.0, share)), 1)

    def ticks(self, most: int = 6, scale: float = 1.0) -> list[tuple[float, str]]:
        """Return at most `most` round values in steps of 1, 2 or 5 times a power of ten, with labels in units of
        1 / `scale`."""
        if self.high <= self.low:
            return [(self.low, f"{scale * self.low:g}")]
        rough = (self.high - self.low) / most
        power = 10.0 ** floor(log10(rough))
        step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough * (1 - 1e-9))
        numbers = range(ceil(self.low / step - 1e-9), floor(self.high / step + 1e-9) + 1)
        values = [round(number * step, 10) + 0.0 for number in numbers]
        return [(value, f"{scale * value:g}") for value in values]


class Plot:
    """A plot under construction. Elements are placed by their values on the axes `x` and `y`, which increases upwards
    if its first end is the lower one; their CSS classes are in static/style.css."""

    def __init__(self, x: Point, y: Point, width: int = WIDTH, height: int = HEIGHT) -> None:
        top, right, bottom, left = MARGINS
        self.width, self.height = width, height
        self.x, self.y = Axis(*x, left, width - right), Axis(*y, height - bottom, top)
        self._elements: list[str] = []

    def _draw(self, tag: str, css: str, attributes: Attributes, tooltip: str = "", text: str = "") -> None:
        """Add an element with coordinates in the figure's units. tooltip: shown on hover."""
        self._elements.append(_make_element(tag, css, attributes, tooltip, text))

    def draw_line(self, css: str, start: Point, end: Point) -> None:
        """Draw a straight line."""
        ends = {"x1": self.x.at(start[0]), "y1": self.y.at(start[1]), "x2": self.x.at(end[0]), "y2": self.y.at(end[1])}
        self._draw("line", css, ends)

    def draw_path(self, css: str, points: Sequence[Point]) -> None:
        """Draw a line through points."""
        corners = " ".join(f"{_format(self.x.at(x))},{_format(self.y.at(y))}" for x, y in points)
        self._draw("path", css, {"d": f"M{corners}"})

    def draw_marker(self, series: int, x: float, y: float, tooltip: str = "", hollow: bool = False) -> None:
        """Draw the marker of a series, with its colour and shape."""
        where = f"translate({_format(self.x.at(x))} {_format(self.y.at(y))})"
        self._elements.append(_make_marker(series, hollow, {"transform": where}, tooltip))

    def draw_box(self, css: str, start: Point, end: Point, tooltip: str = "") -> None:
        """Draw a rectangle between two corners, at least 0.8 wide and high."""
        left, right = sorted((self.x.at(start[0]), self.x.at(end[0])))
        top, bottom = sorted((self.y.at(start[1]), self.y.at(end[1])))
        width, height = max(right - left, 0.8), max(bottom - top, 0.8)
        self._draw("rect", css, {"x": left, "y": top, "width": width, "height": height}, tooltip)

    def write(
        self, text: str, x: float, y: float, anchor: str = "middle", css: str = "", dx: float = 0.0, dy: float = 0.0
    ) -> None:
        """Write a text at a position, moved by (dx, dy) in the figure's units."""
        where: dict[str, float | str] = {"x": self.x.at(x) + dx, "y": self.y.at(y) + dy, "text-anchor": anchor}
        self._draw("text", css, where, text=text)

    def draw_axes(self, names: tuple[str, str], x_ticks: Ticks, y_ticks: Ticks) -> None:
        """Draw the axes with ticks and names: horizontal grid lines, labels below and to the left."""
        x, y = self.x, self.y
        for value, label in y_ticks:
            self.draw_line("grid", (x.low, value), (x.high, value))
            self.write(label, x.low, value, "end", dx=-6, dy=4)
        self.draw_line("axis", (x.low, y.low), (x.high, y.low))
        for value, label in x_ticks:
            self._draw("line", "axis", {"x1": x.at(value), "y1": y.first, "x2": x.at(value), "y2": y.first + 4})
            half = 3.5 * len(label)  # long labels at the ends stay inside the figure
            right, left = x.at(value) + half > self.width, x.at(value) < half
            self.write(label, value, y.low, "end" if right else "start" if left else "middle", dy=17)
        self.write(names[0], (x.low + x.high) / 2, y.low, css="name", dy=36)
        turned = f"translate(14 {_format((y.first + y.last) / 2)}) rotate(-90)"
        self._draw("text", "name", {"transform": turned, "text-anchor": "middle"}, text=names[1])

    def finish(
        self,
        title: str,
        caption: str,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        series: Sequence[tuple[int, str]] = (),
        label: str = "",
    ) -> Figure:
        """Return the figure. label: what the picture shows, for screen readers; by default its title."""
        name = escape_text(label or title)
        opening = f'<svg class="figure" viewBox="0 0 {self.width} {self.height}" role="img" aria-label="{name}">'
        svg = f"{opening}<title>{name}</title>{''.join(self._elements)}</svg>"
        return Figure(svg, title, caption, head, rows, series)


def draw_legend_key(series: int) -> str:
    """Return the marker of a series as a small SVG for a legend."""
    marker = _make_marker(series, hollow=False, attributes={})
    return f'<svg class="key" width="16" height="16" viewBox="-8 -8 16 16" aria-hidden="true">{marker}</svg>'


def escape_text(value: str) -> str:
    """Escape untrusted text for SVG and HTML."""
    return escape(escape_untrusted(value, LINES))


def _make_marker(series: int, hollow: bool, attributes: Attributes, tooltip: str = "") -> str:
    shape = series % SERIES
    css = f"c{shape} {'hollow' if hollow else 'mark'}"
    return _make_element("path", css, {"d": _MARKERS[shape], **attributes}, tooltip)


def _make_element(tag: str, css: str, attributes: Attributes, tooltip: str = "", text: str = "") -> str:
    values = {"class": css, **attributes} if css else attributes
    written = "".join(f' {name}="{_format(value)}"' for name, value in values.items())
    title = f"<title>{escape_text(tooltip)}</title>" if tooltip else ""
    return f"<{tag}{written}>{title}{escape_text(text)}</{tag}>"


def _format(value: float | str) -> str:
    """Format a coordinate with one decimal and as few characters as possible."""
    return value if isinstance(value, str) else f"{round(value, 1) + 0.0:g}"
