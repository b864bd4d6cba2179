"""Scores as pages show them: as text, and as small graphics in the rows of tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...benchmarks.benchmark import load_benchmarks
from ...benchmarks.plot._style import MINUS
from ...benchmarks.scoring.record import SeverityPoint, format_estimate
from ...benchmarks.statistics.interval import Estimate, read_interval
from ..tables.table import Row, Table

SHARE = (0.0, 1.0)
"""The bounds of a score that is shown in percent; other scores are shown unscaled."""

STRIP, BAR = 130, 80
"""Widths of the strip of intervals and of a rank set's bar, with a margin of 5 on either side."""

_EDGE = 5

_PAPER = re.compile(r"(?P<arxiv>arXiv:(\d{4}\.\d{4,5}))|(?P<doi>doi:(10\.\S+?)(?=\)?[.,;]?(?:\s|$)))")


def format_score(value: float, bounds: Sequence[float] | None, more: int = 0) -> str:
    """Format a score for a table: in percent with one decimal, or with four digits. more: additional digits."""
    text = f"{100 * value:z.{1 + more}f}" if tuple(bounds or ()) == SHARE else f"{value:z.{4 + more}g}"
    return text.replace("-", MINUS, text.startswith("-"))


def format_interval(estimate: Any, bounds: Sequence[float] | None) -> str:
    """Format the interval of an estimate in brackets."""
    return f"[{format_score(estimate.low, bounds)}, {format_score(estimate.high, bounds)}]"


def format_difference(value: float, bounds: Sequence[float] | None) -> str:
    """Format a difference with its sign, using the Unicode minus."""
    text = format_score(value, bounds)
    return text if text.startswith(MINUS) else f"+{text}"


def format_p_value(p: float) -> str:
    """Format a p-value with two digits."""
    return f"{p:.2g}" if p >= 0.0001 else "<\N{NO-BREAK SPACE}0.0001"


def format_range(low: float, high: float) -> str:
    """Format ranks or severities: one value, or the first and the last."""
    return f"{low:g}" if low == high else f"{low:g}–{high:g}"


def format_severity(point: SeverityPoint) -> str:
    """Format the severities of a point of a curve."""
    return format_range(point.first, point.last)


def describe_estimate(estimate: Any) -> str:
    """Format an estimate, or the JSON of one, as text."""
    return format_estimate(read_interval(estimate) if isinstance(estimate, dict) else estimate)


def is_measured(estimate: Any) -> bool:
    """Return whether this is an estimate and not the reason for a missing one."""
    return "value" in estimate if isinstance(estimate, dict) else isinstance(estimate, Estimate)


def link_papers(citation: str) -> Iterator[tuple[str, str]]:
    """Split a citation into pieces, each with the address that it names, or an empty text."""
    end = 0
    for match in _PAPER.finditer(citation):
        yield citation[end : match.start()], ""
        yield match[0], f"https://arxiv.org/abs/{match[2]}" if match["arxiv"] else f"https://doi.org/{match[4]}"
        end = match.end()
    yield citation[end:], ""


def describe_axis(meaning: Any) -> str:
    """Return what a severity or group is, such as "output length (actions)"; empty without a definition."""
    if meaning is None:
        return ""
    return f"{meaning.name} ({meaning.unit})" if meaning.unit else str(meaning.name)


def describe_severity_axis(benchmark: str) -> str:
    """Return a benchmark's measure of severity."""
    known = load_benchmarks().get(benchmark)
    return describe_axis(known.manifest.definition.severity) or "severity" if known is not None else "severity"


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


def make_strip_scale(table_view: Table) -> Scale:
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


def split_letters(ties: str) -> list[str]:
    """Return the letters of an entry's tie groups; letters of two characters are separated by spaces."""
    return ties.split() if " " in ties else list(ties)


def list_tie_letters(table_view: Table) -> list[str]:
    """Return the letters of a table's tie groups in order."""
    letters = {letter for row in table_view.rows for letter in split_letters(row.ties)}
    return sorted(letters, key=lambda letter: (len(letter), letter))
