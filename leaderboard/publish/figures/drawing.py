"""What every figure is made of: elements of SVG, axes of numbers, and the figure with its table of data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import ceil, floor, log10
from typing import Literal

from ....core.listings.visible import LINES, visible

WIDTH, HEIGHT = 560, 330
"""The size of a figure in its own units; a page scales it."""

LEFT, RIGHT, TOP, BOTTOM = 56, 16, 14, 44
"""The room around the axes."""

SERIES = 7
"""How many colours and shapes of marker the style sheet and `marker` have."""

Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Figure:
    """A figure: its SVG, made here and safe as it is; what it shows, in words; and the data that are drawn, as `head`
    and `rows` of a table. series: what is told apart by colour and shape: the number of each, and its name."""

    svg: str
    title: str
    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    series: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Axis:
    """Where the values from `low` to `high` lie: from `first` to `last` in the figure's units."""

    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """The place of a value; one beyond the ends lies at the end."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return place(self.first + (self.last - self.first) * min(1.0, max(0.0, share)))


def across(low: float, high: float, width: int = WIDTH) -> Axis:
    """The axis along the bottom."""
    return Axis(low, high, LEFT, width - RIGHT)


def up(low: float, high: float, height: int = HEIGHT) -> Axis:
    """The axis along the left side, which grows upwards."""
    return Axis(low, high, height - BOTTOM, TOP)


def place(value: float) -> float:
    """A coordinate with one decimal, and never a negative zero."""
    return round(value, 1) + 0.0


def number(value: float) -> str:
    """A coordinate as SVG writes it, in as few characters as hold it."""
    return f"{place(value):g}"


def text(value: str) -> str:
    """A text that strangers may have written, as SVG and HTML hold it."""
    return escape(visible(value, LINES))


def label(x: float, y: float, said: str, anchor: Anchor = "middle", name: str = "") -> str:
    """Words at a place."""
    kind = f' class="{name}"' if name else ""
    return f'<text{kind} x="{number(x)}" y="{number(y)}" text-anchor="{anchor}">{text(said)}</text>'


def line(name: str, x1: float, y1: float, x2: float, y2: float) -> str:
    """A straight line of a class."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line class="{name}" {ends}/>'


def path(name: str, points: Sequence[tuple[float, float]]) -> str:
    """A line through points."""
    return f'<path class="{name}" d="M{" ".join(f"{number(x)},{number(y)}" for x, y in points)}"/>'


def steps(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The corners of the line that keeps each height until the next point."""
    corners = list(points[:1])
    for (_, before), (x, y) in pairwise(points):
        corners += [(x, before), (x, y)]
    return corners


def marker(series: int, x: float, y: float, said: str = "", hollow: bool = False) -> str:
    """The marker of a series: colour and shape both tell which. `said` is shown when it is pointed at."""
    shape = series % SERIES
    size = 4.5
    outlines = [
        "",
        f"M{number(x - size)},{number(y - size)}h{2 * size:g}v{2 * size:g}h-{2 * size:g}z",
        f"M{number(x)},{number(y - 5.5)}l5.2,9.5h-10.4z",
        f"M{number(x)},{number(y - 6)}l6,6l-6,6l-6,-6z",
        f"M{number(x)},{number(y + 5.5)}l5.2,-9.5h-10.4z",
        f"M{number(x - 1.8)},{number(y - 5.5)}h3.6v3.7h3.7v3.6h-3.7v3.7h-3.6v-3.7h-3.7v-3.6h3.7z",
        f"M{number(x - 2.5)},{number(y - 5)}h5l3,5l-3,5h-5l-3,-5z",
    ]
    name = f"c{shape} hollow" if hollow else f"c{shape} mark"
    title = f"<title>{text(said)}</title>" if said else ""
    if shape == 0:
        return f'<circle class="{name}" cx="{number(x)}" cy="{number(y)}" r="4.5">{title}</circle>'
    return f'<path class="{name}" d="{outlines[shape]}">{title}</path>'


def key(series: int) -> str:
    """The marker of a series as a small picture for a legend."""
    return (
        f'<svg class="key" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">{marker(series, 8, 8)}</svg>'
    )


def drawn(content: Sequence[str], title: str, width: int = WIDTH, height: int = HEIGHT) -> str:
    """The whole picture, with its title for those who do not see it."""
    body = "".join(content)
    return (
        f'<svg class="figure" viewBox="0 0 {width} {height}" role="img" aria-label="{text(title)}">'
        f"<title>{text(title)}</title>{body}</svg>"
    )


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values between `low` and `high`: at most `most`, in steps of 1, 2 or 5 times a power of ten."""
    if high <= low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** floor(log10(rough))
    step = next(power * size for size in (1, 2, 5, 10) if power * size >= rough * (1 - 1e-9))
    first = ceil(low / step - 1e-9)
    last = floor(high / step + 1e-9)
    return [round(number * step, 10) + 0.0 for number in range(first, last + 1)]


def frame(
    x: Axis, y: Axis, names: tuple[str, str], across_at: Sequence[tuple[float, str]], up_at: Sequence[tuple[float, str]]
) -> list[str]:
    """The axes with their ticks and names: grid lines across, words below and to the left."""
    made = []
    for value, said in up_at:
        made.append(line("grid", x.first, y.at(value), x.last, y.at(value)))
        made.append(label(x.first - 6, y.at(value) + 4, said, "end"))
    made.append(line("axis", x.first, y.first, x.last, y.first))
    for value, said in across_at:
        made.append(line("axis", x.at(value), y.first, x.at(value), y.first + 4))
        made.append(label(x.at(value), y.first + 17, said, _within(x, x.at(value), said)))
    middle = (y.first + y.last) / 2
    made.append(label((x.first + x.last) / 2, y.first + 36, names[0], name="name"))
    made.append(
        f'<text class="name" transform="translate(14 {number(middle)}) rotate(-90)" text-anchor="middle">'
        f"{text(names[1])}</text>"
    )
    return made


def _within(x: Axis, at: float, said: str) -> Anchor:
    """How words stand at a tick, so that long ones do not leave the picture."""
    half = 3.5 * len(said)
    return "end" if at + half > x.last + RIGHT else "start" if at - half < x.first - LEFT else "middle"
