"""Score axes: limits that include everything drawn, and ticks in percent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING, Literal

from ..statistics.interval import HasInterval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


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
