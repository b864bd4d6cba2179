"""OOD against ID scores on logit axes, where many models tend to fall on a line (Taori et al., NeurIPS 2020; on probit
axes Miller et al., ICML 2021): a model above the line is more robust than its ID score predicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError
from ...core.text import drop_version
from ..derived.robustness import FEWEST, Line, Point, fit_line
from ..scoring.record import Score
from ..statistics.interval import Estimate, Interval
from ._panels import Panel, describe_incomparable, describe_intervals, get_estimate, is_percent, make_panels
from ._style import COLUMN, GREY, MINUS, NAME, Look, assign_looks, draw_marks, fold, make_legend_key, make_panel_grid

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SPACE = 0.13
"""Minimum distance between ticks, as a share of the axis."""

TICKS = (0.5, 0.1, 0.9, 0.01, 0.99, 0.001, 0.999, 0.2, 0.8, 0.05, 0.95, 0.3, 0.7, 0.02, 0.98, 0.005, 0.995, 0.4, 0.6)
"""Tick positions, in order of preference."""


def picture(records: Sequence[Score]) -> Figure:
    """Plot one point per model with 95 % t intervals on both axes, the line y = x, and, with at least three different
    ID scores, the least-squares line logit(ood) = a + b logit(id) through the values.

    The logit of 0 and 1 is infinite: such a score is drawn half a row inside, and an interval that ends there extends
    beyond the axes. Raises `FarshiftError` for a metric that does not lie in [0, 1]."""
    if others := sorted({f"{drop_version(r.metric)} of {r.benchmark}" for r in records if not is_percent(r)}):
        raise FarshiftError(f"{', '.join(others)} does not lie in [0, 1], so it has no logit: omit this run")
    panel_list = make_panels(records)
    look = assign_looks([name for panel in panel_list for name in panel.names])
    keys = [make_legend_key(each, fold(name, NAME), line=False) for name, each in look.items()]
    figure, places = make_panel_grid(panel_list, COLUMN, 3.1, _format_note(panel_list), keys)
    for axes, panel in zip(places, panel_list, strict=True):
        _draw_panel(axes, panel, look)
    return figure


def _format_note(panel_list: Sequence[Panel]) -> str:
    records = [record for panel in panel_list for record in panel.records]
    sentences = [f"Bars: {describe_intervals(records)}.", "Dashed: y\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}x."]
    lines = []
    for panel in panel_list:
        if line := fit_panel_line(panel):
            sign = "+" if line.slope >= 0 else "-"
            of = f" ({panel.title})" if len(panel_list) > 1 else ""
            lines.append(f"{line.intercept:.2f} {sign} {abs(line.slope):.2f} logit(ID)".replace("-", MINUS) + of)
    if lines:
        sentences.append(f"Solid: least squares, logit(OOD) = {', '.join(lines)}.")
    if any(each.value in (0, 1) for record in records for each in _get_both_estimates(record)):
        sentences.append("Scores of 0 and 100 % are drawn half a row inside.")
    return " ".join(filter(None, [*sentences, describe_incomparable(records)]))


def _get_both_estimates(record: Score) -> tuple[Estimate, Estimate]:
    return get_estimate(record, "id"), get_estimate(record, "ood")


def _draw_panel(axes: Axes, panel: Panel, look: Mapping[str, Look]) -> None:
    low, high = compute_limits([each for record in panel.records for each in _get_both_estimates(record)])
    axes.set(xscale="logit", yscale="logit", xlim=(low, high), ylim=(low, high))
    axes.set(xlabel=f"ID {panel.metric}", ylabel=f"OOD {panel.metric}")
    axes.set_box_aspect(1)
    chosen_ticks = choose_ticks(low, high)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(chosen_ticks, [f"{100 * tick:g}" for tick in chosen_ticks])
        axis.set_ticks([], minor=True)
    axes.plot([low, high], [low, high], color=GREY, lw=0.9, ls="--", zorder=1, label="y = x")
    if line := fit_panel_line(panel):
        x = clip_line(line, logit(low), logit(high))
        y = [line.intercept + line.slope * at for at in x]
        axes.plot([*map(expit, x)], [*map(expit, y)], color="black", lw=0.9, zorder=1, label="least squares")
    for name, record in zip(panel.names, panel.records, strict=True):
        on_id, on_ood = map(clip_to_logit, _get_both_estimates(record))
        draw_marks(axes, [on_id], [on_ood], look[name], name)


def clip_to_logit(score_estimate: Estimate) -> Interval:
    """Return the value and the ends of the interval, clipped to at least 0.5 / (rows + 1) from 0 and 1, where the logit
    is finite; the same empirical logits are used to fit the line."""
    half = 0.5 / (score_estimate.rows + 1)
    ends = (score_estimate.value, score_estimate.low, score_estimate.high)
    return Interval(*(min(max(end, half), 1 - half) for end in ends))


def logit(share: float) -> float:
    return log(share / (1 - share))


def expit(logit: float) -> float:
    return 1 / (1 + exp(-logit))


def fit_panel_line(panel: Panel) -> Line | None:
    """Fit the least-squares line through the panel's models; None for fewer than three different ID scores."""
    pairs = [_get_both_estimates(record) for record in panel.records]
    points = [Point(on_id.value, on_ood.value, on_id.rows, on_ood.rows) for on_id, on_ood in pairs]
    return fit_line(points) if len({point.id for point in points}) >= FEWEST else None


def clip_line(line: Line, low: float, high: float) -> tuple[float, float]:
    """Return the range of logit(id) in which the line is inside the square from `low` to `high` logits. The range is
    not empty, since the line passes through the mean of the points."""
    if line.slope == 0:
        return low, high
    first, last = sorted(((low - line.intercept) / line.slope, (high - line.intercept) / line.slope))
    return max(low, first), min(high, last)


def compute_limits(estimates: Sequence[Estimate]) -> tuple[float, float]:
    """Return the range of both axes: every value, and every interval end that is not an end of the scale, with a margin
    of a third of a logit, and at least two logits in total."""
    values = [clip_to_logit(each).value for each in estimates]
    values += [clip_to_logit(each).low for each in estimates if 0 < each.low < 1]
    values += [clip_to_logit(each).high for each in estimates if 0 < each.high < 1]
    low, high = logit(min(values)), logit(max(values))
    margin = max(1 / 3, 1 - (high - low) / 2)
    return expit(low - margin), expit(high + margin)


def choose_ticks(low: float, high: float) -> list[float]:
    """Return round shares between `low` and `high` that are far enough apart on a logit axis, ascending."""
    span = logit(high) - logit(low)
    chosen: list[float] = []
    for tick in TICKS:
        clear = all(abs(logit(tick) - logit(other)) >= SPACE * span for other in chosen)
        if low <= tick <= high and clear:
            chosen.append(tick)
    return sorted(chosen)
