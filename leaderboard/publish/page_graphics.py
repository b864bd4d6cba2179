"""Small pictures of the pages, as coordinates: intervals on a common scale, rank sets as bars, the severity curve."""

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
"""The bounds of a score that is shown in percent; any other is shown as it is."""

STRIP, BAR = 150, 90
"""Widths of the picture of intervals and of a rank set's bar; an end of 5 is left free on either side."""

_EDGE = 5


@dataclass(frozen=True)
class Scale:
    """The scores from `low` to `high` on a strip."""

    low: float
    high: float

    def x(self, value: float) -> float:
        """Where a score lies; one beyond the ends lies at the end."""
        share = (value - self.low) / ((self.high - self.low) or 1.0)
        return round(_EDGE + (STRIP - 2 * _EDGE) * min(1.0, max(0.0, share)), 1)

    @property
    def ticks(self) -> list[float]:
        """Where the ends and the middle lie."""
        return [self.x(value) for value in (self.low, (self.low + self.high) / 2, self.high)]


def make_strip_scale(table_view: TableView) -> Scale:
    """The scale of a table's strips: 0 to 1 for shares, else from the lowest to the highest end of an interval."""
    scores = [row.standing.score for row in table_view.rows]
    if scores[0].bounds == SHARE:
        return Scale(0.0, 1.0)
    ends = [estimate for score in scores for estimate in (score.id, score.ood)]
    return Scale(min(interval.low for interval in ends), max(interval.high for interval in ends))


def compute_rank_bar(row: Row, ranked: int) -> dict[str, float] | None:
    """Where a rank set's bar begins, and how wide it is; None where there is none."""
    if row.rank is None:
        return None
    low, high = row.rank
    step = BAR / ranked
    return {"x": round((low - 1) * step, 1), "width": round(max((high - low + 1) * step, 3.0), 1)}


def list_tie_letters(table_view: TableView) -> list[str]:
    """The letters of a table's tie groups, in their order."""
    letters = {letter for row in table_view.rows for letter in split_letters(row.ties)}
    return sorted(letters, key=lambda letter: (len(letter), letter))


def split_letters(ties: str) -> list[str]:
    """The letters of an entry: those with two characters are parted by blanks."""
    return ties.split() if " " in ties else list(ties)


def make_severity_curve(score: Score) -> dict[str, Any] | None:
    """The severity curve in the coordinates of its picture (560 x 215), or None where there is none to draw."""
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
    """The points whose labels do not run into the one before (a digit is about 6 wide)."""
    labels: list[dict[str, Any]] = []
    for point in points:
        if not labels or point["x"] - labels[-1]["x"] > 3.2 * (len(point["label"]) + len(labels[-1]["label"])) + 6:
            labels.append(point)
    return labels


def describe_severity_axis(benchmark: str) -> str:
    """What the benchmark's severity is, such as "output length (actions)"."""
    known = load_benchmarks().get(benchmark)
    meaning = known.manifest.definition.severity if known is not None else None
    if meaning is None:
        return "severity"
    return f"{meaning.name} ({meaning.unit})" if meaning.unit else meaning.name


def _format_range(point: SeverityPoint) -> str:
    ends = [f"{value:g}" for value in (point.first, point.last)]
    return ends[0] if ends[0] == ends[1] else "–".join(ends)


def format_score(value: float, bounds: Sequence[float] | None) -> str:
    """A score as a table shows it: in percent with one decimal, or with four digits."""
    text = f"{100 * value:z.1f}" if tuple(bounds or ()) == SHARE else f"{value:z.4g}"
    return text.replace("-", MINUS, text.startswith("-"))


def format_precise_score(value: float, bounds: Sequence[float] | None) -> str:
    """A score with one digit more."""
    return f"{100 * value:z.2f}" if tuple(bounds or ()) == SHARE else f"{value:z.5g}"


def format_difference(value: float, bounds: Sequence[float] | None) -> str:
    """A difference with its sign; a true minus."""
    text = f"{100 * value:+z.1f}" if tuple(bounds or ()) == SHARE else f"{value:+z.4g}"
    return text.replace("-", MINUS, text.startswith("-"))


def is_measured(estimate: Any) -> bool:
    """Whether there is an estimate, and not a reason why there is none."""
    return "value" in estimate if isinstance(estimate, dict) else isinstance(estimate, Estimate)


def describe_estimate(estimate: Any) -> str:
    """An estimate, or the JSON of one, in words."""
    return format_estimate(read_interval(estimate) if isinstance(estimate, dict) else estimate)
