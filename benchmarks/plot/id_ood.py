"""OOD against ID on logit axes, where the scores of many models tend to lie on a line (Taori et al., NeurIPS 2020;
Miller et al., ICML 2021): a model above the line carries its skill further than its ID score lets expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ..derived.robustness import FEWEST, Line, Point, fit_line
from ..scoring.record import Score
from ..statistics.interval import Estimate, Interval
from ._labels import label_points
from ._page import grid, more, page
from ._panels import Panel, apart, estimate, in_percent, meaning_of_intervals, panels
from ._style import BODY, COLUMN, GREY, HEAD, MINUS, NAME, PAGE, TITLE, Look, key, looks, marks
from ._text import folded, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

FEW, SHORT = 4, 80.0
"""So many points can be named beside themselves, where no name is wider (in points) and there is room; otherwise there
is a legend."""

SPACE = 0.13
"""Ticks stand at least this share of an axis apart."""

TICKS = (0.5, 0.1, 0.9, 0.01, 0.99, 0.001, 0.999, 0.2, 0.8, 0.05, 0.95, 0.3, 0.7, 0.02, 0.98, 0.005, 0.995, 0.4, 0.6)
"""In order of preference."""


def picture(records: Sequence[Score]) -> Figure:
    """One point per model with 95 % t intervals both ways, the line y = x, and, from three different ID scores on, the
    least-squares line logit(ood) = a + b logit(id) through the values.

    The logit of 0 and 1 is infinite: such a score is drawn half a row inside, and an interval that ends there runs off
    the axes. Raises `FarshiftError` for a metric that does not lie in [0, 1]."""
    if others := sorted({f"{r.metric} of {r.benchmark}" for r in records if not in_percent(r)}):
        raise FarshiftError(f"{', '.join(others)} does not lie in [0, 1], so it has no logit: leave it out")
    shown = panels(records)
    look = looks([name for panel in shown for name in panel.names])
    if len(shown) == 1 and len(look) <= FEW and max(width(name, BODY) for name in look) <= SHORT:
        figure, (axes,) = _drawn(shown, look, [])
        figure.draw_without_rendering()
        if label_points(axes, _places(shown[0], look)):
            return figure
    # Many names stand in two columns, of 1.28 inches each.
    short = folded(look, BODY, NAME if len(shown) > 1 or len(look) <= 6 else 92)
    return _drawn(shown, look, [key(each, short[name], line=False) for name, each in look.items()])[0]


def _drawn(shown: Sequence[Panel], look: Mapping[str, Look], keys: Sequence[Line2D]) -> tuple[Figure, list[Axes]]:
    columns = min(2, len(shown))
    titles = folded([panel.title for panel in shown], TITLE, HEAD)
    tall = 3.1 * -(-len(shown) // columns) + more(titles.values())
    figure = page(COLUMN if columns == 1 else PAGE, tall, _note(shown), keys)
    places = grid(figure, len(shown), columns)
    for axes, panel in zip(places, shown, strict=True):
        _draw(axes, panel, titles[panel.title], look)
    return figure, places


def _note(shown: Sequence[Panel]) -> str:
    records = [record for panel in shown for record in panel.records]
    sentences = [f"Bars: {meaning_of_intervals(records)}.", "Dashed: y\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}x."]
    lines = []
    for panel in shown:
        if line := fitted(panel):
            sign = "+" if line.slope >= 0 else "-"
            of = f" ({panel.title})" if len(shown) > 1 else ""
            lines.append(f"{line.intercept:.2f} {sign} {abs(line.slope):.2f} logit(ID)".replace("-", MINUS) + of)
    if lines:
        sentences.append(f"Solid: least squares, logit(OOD) = {', '.join(lines)}.")
    if any(found.value in (0, 1) for record in records for found in _both(record)):
        sentences.append("Scores of 0 and 100 % are drawn half a row inside.")
    return " ".join(filter(None, [*sentences, apart(records)]))


def _both(record: Score) -> tuple[Estimate, Estimate]:
    return estimate(record, "id"), estimate(record, "ood")


def _draw(axes: Axes, panel: Panel, title: str, look: Mapping[str, Look]) -> None:
    low, high = limits([found for record in panel.records for found in _both(record)])
    axes.set(xscale="logit", yscale="logit", xlim=(low, high), ylim=(low, high), title=title)
    axes.set(xlabel=f"ID {panel.metric}", ylabel=f"OOD {panel.metric}")
    axes.set_box_aspect(1)
    shown = ticks(low, high)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(shown, [f"{100 * tick:g}" for tick in shown])
        axis.set_ticks([], minor=True)
    axes.plot([low, high], [low, high], color=GREY, lw=0.9, ls="--", zorder=1, label="y = x")
    if line := fitted(panel):
        x = within(line, logit(low), logit(high))
        y = [line.intercept + line.slope * at for at in x]
        axes.plot([*map(expit, x)], [*map(expit, y)], color="black", lw=0.9, zorder=1, label="least squares")
    for name, record in zip(panel.names, panel.records, strict=True):
        on_id, on_ood = map(inside, _both(record))
        marks(axes, [on_id], [on_ood], look[name], name)


def _places(panel: Panel, look: Mapping[str, Look]) -> dict[str, tuple[float, float, Look]]:
    """Where the point of each name lies."""
    found = {}
    for name, record in zip(panel.names, panel.records, strict=True):
        on_id, on_ood = map(inside, _both(record))
        found[name] = on_id.value, on_ood.value, look[name]
    return found


def inside(found: Estimate) -> Interval:
    """The value and the ends of the interval, moved to where a logit is finite: at least 0.5 / (rows + 1) from 0 and 1,
    whose empirical logits are those of the line's fit."""
    half = 0.5 / (found.rows + 1)
    return Interval(*(min(max(end, half), 1 - half) for end in (found.value, found.low, found.high)))


def logit(share: float) -> float:
    return log(share / (1 - share))


def expit(logit: float) -> float:
    return 1 / (1 + exp(-logit))


def fitted(panel: Panel) -> Line | None:
    """The least-squares line through the panel's models; None for fewer than three different ID scores."""
    both = [_both(record) for record in panel.records]
    points = [Point(on_id.value, on_ood.value, on_id.rows, on_ood.rows) for on_id, on_ood in both]
    return fit_line(points) if len({point.id for point in points}) >= FEWEST else None


def within(line: Line, low: float, high: float) -> tuple[float, float]:
    """Between which logit(id) the line runs inside the square from `low` to `high` logits. It does so somewhere, for it
    runs through the mean of the points."""
    if line.slope == 0:
        return low, high
    first, last = sorted(((low - line.intercept) / line.slope, (high - line.intercept) / line.slope))
    return max(low, first), min(high, last)


def limits(found: Sequence[Estimate]) -> tuple[float, float]:
    """The range of both axes: every value, and every end of an interval that is not that of the scale, with a margin of
    a third of a logit, and at least two logits in all."""
    held = [inside(each).value for each in found]
    held += [inside(each).low for each in found if 0 < each.low < 1]
    held += [inside(each).high for each in found if 0 < each.high < 1]
    low, high = logit(min(held)), logit(max(held))
    margin = max(1 / 3, 1 - (high - low) / 2)
    return expit(low - margin), expit(high + margin)


def ticks(low: float, high: float) -> list[float]:
    """The roundest shares between `low` and `high` that stand clear of each other on a logit axis, ascending."""
    span = logit(high) - logit(low)
    shown: list[float] = []
    for tick in TICKS:
        clear = all(abs(logit(tick) - logit(other)) >= SPACE * span for other in shown)
        if low <= tick <= high and clear:
            shown.append(tick)
    return sorted(shown)
