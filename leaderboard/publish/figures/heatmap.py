"""Heat maps of an entry: the score of each group, or at each severity, in each seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

from ....benchmarks.scoring.record import Score
from ....benchmarks.statistics.interval import Estimate
from ..page_graphics import SHARE, format_score
from .severity import format_severity
from .svg import WIDTH, Figure, draw_label, draw_svg, escape_text, format_coordinate

MOST = 40
"""Maximum number of rows that are drawn; the data table has all."""

_NAMES, _ROW, _HEAD, _SCALE = 190, 17, 22, 34
_LETTERS = 27


def make_group_map(score: Score) -> Figure | None:
    """Return the heat map of the OOD groups, worst first; None if there are no groups."""
    if score.worst_group is None:
        return None
    sign = 1 if score.better == "higher" else -1
    groups = sorted(score.worst_group.groups.items(), key=lambda item: (sign * item[1].value, item[0]))
    return _make_map("Score of each OOD group in each seed", "group", dict(groups), score)


def make_severity_map(score: Score) -> Figure | None:
    """Return the heat map of the severities, those of training first; None for fewer than two."""
    if len(score.severity) < 2:
        return None
    points = sorted(score.severity, key=lambda point: (point.middle, point.view))
    estimates = {f"{format_severity(point)} ({point.view.upper()})": point.estimate for point in points}
    return _make_map("Score at each severity in each seed", "severity", estimates, score)


def _make_map(title: str, what: str, lines: Mapping[str, Estimate], score: Score) -> Figure | None:
    known = {name: estimate for name, estimate in lines.items() if len(estimate.per_seed) == len(score.seeds)}
    if not known:
        return None
    drawn_lines = list(known.items())[:MOST]
    low, high = _compute_range([value for _, estimate in drawn_lines for value in estimate.per_seed], score)
    width = (WIDTH - _NAMES) / len(score.seeds)
    content = [
        draw_label(_NAMES + (k + 0.5) * width, 14, str(seed))
        for k, seed in enumerate(score.seeds)
        if len(score.seeds) <= 20 or k % 5 == 0
    ]
    content.append(draw_label(_NAMES - 6, 14, "seed", "end"))
    for row, (name, estimate) in enumerate(drawn_lines):
        y = _HEAD + row * _ROW
        content.append(draw_label(_NAMES - 6, y + 12, _shorten_name(name), "end"))
        for k, value in enumerate(estimate.per_seed):
            tooltip = (
                f"{name}, seed {score.seeds[k]}: {format_score(value, score.bounds) if isfinite(value) else 'n/a'}"
            )
            content.append(_draw_cell(_NAMES + k * width, y, width, value, (low, high), tooltip))
    foot = _HEAD + len(drawn_lines) * _ROW
    content += _draw_scale(foot + 10, (low, high), score)
    caption = "A stronger colour means a higher score" + ("" if score.better == "higher" else "; lower is better")
    if what == "group":
        caption += ". The worst of several noisy scores is biased downwards"
    if len(known) > len(drawn_lines):
        caption += f". The first {len(drawn_lines)} of {len(known)} are drawn; the table has all"
    rows = tuple(
        (
            name,
            format_score(estimate.value, score.bounds),
            str(estimate.rows),
            *(_format_value(value, score) for value in estimate.per_seed),
        )
        for name, estimate in known.items()
    )
    head = (what, "mean", "rows", *(f"seed {seed}" for seed in score.seeds))
    return Figure(draw_svg(content, title, height=foot + _SCALE), title, f"{caption}.", head, rows)


def _format_value(value: float, score: Score) -> str:
    return format_score(value, score.bounds) if isfinite(value) else "n/a"


def _compute_range(values: Sequence[float], score: Score) -> tuple[float, float]:
    finite = [value for value in values if isfinite(value)]
    return (0.0, 1.0) if score.bounds == SHARE or not finite else (min(finite), max(finite))


def _draw_cell(x: float, y: float, width: float, value: float, ends: tuple[float, float], tooltip: str) -> str:
    title = f"<title>{escape_text(tooltip)}</title>" if tooltip else ""
    where = f'x="{format_coordinate(x)}" y="{format_coordinate(y)}" width="{format_coordinate(width)}" height="{_ROW}"'
    if not isfinite(value):
        return f'<rect class="cell none" {where}>{title}</rect>'
    share = (value - ends[0]) / ((ends[1] - ends[0]) or 1.0)
    return f'<rect class="cell" {where} fill-opacity="{0.05 + 0.95 * min(1.0, max(0.0, share)):.2f}">{title}</rect>'


def _draw_scale(y: float, ends: tuple[float, float], score: Score) -> list[str]:
    """Draw the colour scale."""
    elements = [draw_label(_NAMES - 6, y + 12, format_score(ends[0], score.bounds), "end")]
    for k in range(11):
        elements.append(_draw_cell(_NAMES + 16 * k, y, 16, ends[0] + (ends[1] - ends[0]) * k / 10, ends, ""))
    return [*elements, draw_label(_NAMES + 16 * 11 + 6, y + 12, format_score(ends[1], score.bounds), "start")]


def _shorten_name(name: str) -> str:
    return name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…"
