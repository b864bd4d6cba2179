"""Coordinates of small graphics on pages: intervals on a common scale, rank sets as bars, the severity curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...benchmarks.benchmark import load_benchmarks
from ...benchmarks.plot._style import MINUS
from ...benchmarks.scoring.record import Score, SeverityPoint, format_estimate
from ...benchmarks.statistics.interval import Estimate, read_interval
from ..tables.table_view import Row, TableView

SHARE = (0.0, 1.0)
"""The bounds of a score that is shown in percent; other scores are shown unscaled."""

STRIP, BAR = 150, 90
"""Widths of the strip of intervals and of a rank set's bar, with a margin of 5 on either side."""

_EDGE = 5


@dataclass(frozen=True)
class Scale:
    """A scale of scores from `low` to `high` on a strip."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """Return the x coordinate of a score, clipped to the ends."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(_EDGE + (STRIP - 2 * _EDGE) * min(1.0, max(0.0, share)), 1)

    @property
    def ticks(self) -> list[float]:
        """The x coordinates of the ends and the middle."""
        return [self.x(value) for value in (self.low, (self.low + self.high) / 2, self.high)]


def make_strip_scale(table_view: TableView) -> Scale:
    """Return the scale of a table's strips: 0 to 1 for shares, else from the lowest to the highest end of an
    interval."""
    scores = [row.standing.score for row in table_view.rows]
    if scores[0].bounds == SHARE:
        return Scale(0.0, 1.0)
    ends = [estimate for score in scores for estimate in (score.id, score.ood)]
    return Scale(min(interval.low for interval in ends), max(interval.high for interval in ends))


def compute_rank_bar(row: Row, ranked: int) -> dict[str, float] | None:
    """Return the start and width of a rank set's bar; None without a rank set."""
    if row.rank is None:
        return None
    low, high = row.rank
    step = BAR / ranked
    return {"x": round((low - 1) * step, 1), "width": round(max((high - low + 1) * step, 3.0), 1)}


def list_tie_letters(table_view: TableView) -> list[str]:
    """Return the letters of a table's tie groups in order."""
    letters = {letter for row in table_view.rows for letter in split_letters(row.ties)}
    return sorted(letters, key=lambda letter: (len(letter), letter))


def split_letters(ties: str) -> list[str]:
    """Return the letters of an entry's tie groups; letters of two characters are separated by spaces."""
    return ties.split() if " " in ties else list(ties)


def make_severity_curve(score: Score) -> dict[str, Any] | None:
    """Return the severity curve in the coordinates of its graphic (560 x 215), or None if there is none to draw."""
    points = sorted(score.severity, key=lambda point: (point.middle, point.view))
    if len(points) < 2 or score.bounds != SHARE:
        return None
    middles: list[float] = [point.middle for point in points]
    low, high = min(middles), max(middles)

    def x(value: float) -> float:
        return round(60.0 + 470.0 * (value - low) / ((high - low) or 1), 1)

    def y(value: float) -> float:
        return round(170.0 - 155.0 * value, 1)

    markers = [
        {
            "x": x(point.middle),
            "y": y(point.estimate.value),
            "low": y(point.estimate.low),
            "high": y(point.estimate.high),
            "label": _format_range(point),
            "of": point,
        }
        for point in points
    ]
    return {
        "points": markers,
        "labels": _select_clear_labels(markers),
        "ticks": [(value, y(value)) for value in (0, 0.5, 1)],
        "axis": describe_severity_axis(score.benchmark),
    }


def _select_clear_labels(points: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the points whose labels do not overlap the previous one (a digit is about 6 wide)."""
    labels: list[dict[str, Any]] = []
    for point in points:
        if not labels or point["x"] - labels[-1]["x"] > 3.2 * (len(point["label"]) + len(labels[-1]["label"])) + 6:
            labels.append(point)
    return labels


def describe_severity_axis(benchmark: str) -> str:
    """Return the benchmark's measure of severity, such as "output length (actions)"."""
    known = load_benchmarks().get(benchmark)
    meaning = known.manifest.definition.severity if known is not None else None
    if meaning is None:
        return "severity"
    return f"{meaning.name} ({meaning.unit})" if meaning.unit else meaning.name


def _format_range(point: SeverityPoint) -> str:
    ends = [f"{value:g}" for value in (point.first, point.last)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def format_score(value: float, bounds: Sequence[float] | None) -> str:
    """Format a score for a table: in percent with one decimal, or with four digits."""
    text = f"{100 * value:z.1f}" if tuple(bounds or ()) == SHARE else f"{value:z.4g}"
    return text.replace("-", MINUS, text.startswith("-"))


def format_precise_score(value: float, bounds: Sequence[float] | None) -> str:
    """Format a score with one more digit."""
    return f"{100 * value:z.2f}" if tuple(bounds or ()) == SHARE else f"{value:z.5g}"


def format_difference(value: float, bounds: Sequence[float] | None) -> str:
    """Format a difference with its sign, using the Unicode minus."""
    text = f"{100 * value:+z.1f}" if tuple(bounds or ()) == SHARE else f"{value:+z.4g}"
    return text.replace("-", MINUS, text.startswith("-"))


def is_measured(estimate: Any) -> bool:
    """Return whether this is an estimate and not the reason for a missing one."""
    return "value" in estimate if isinstance(estimate, dict) else isinstance(estimate, Estimate)


def describe_estimate(estimate: Any) -> str:
    """Format an estimate, or the JSON of one, as text."""
    return format_estimate(read_interval(estimate) if isinstance(estimate, dict) else estimate)
