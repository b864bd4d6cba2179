"""Scores over time: each entry, and the best OOD score so far."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ....benchmarks.scoring.record import Score
from ..page_graphics import SHARE, format_score
from .svg import (
    Figure,
    draw_axes,
    draw_line,
    draw_marker,
    draw_path,
    draw_svg,
    list_ticks,
    make_step_corners,
    make_x_axis,
    make_y_axis,
)


def make_history_figure(times: Sequence[str], scores: Sequence[Score], names: Sequence[str]) -> Figure | None:
    """Return the OOD scores of one table by the times of the ledger's records, with the best score so far; None for
    fewer than two entries, or if all have the same time."""
    if len(scores) < 2 or len(set(times)) < 2:
        return None
    chronological = sorted(
        zip((datetime.fromisoformat(time).timestamp() for time in times), times, names, scores, strict=True),
        key=lambda entry: (entry[0], entry[2]),
    )
    higher, bounds = scores[0].better == "higher", scores[0].bounds
    best: list[tuple[float, float, str, str, Score]] = []
    for moment, time, name, entry in chronological:
        value = entry.ood.value
        if not best or (value > best[-1][1] if higher else value < best[-1][1]):
            best.append((moment, value, time, name, entry))
    share = bounds == SHARE
    low, high = (0.0, 1.0) if share else (min(s.ood.low for s in scores), max(s.ood.high for s in scores))
    x, y = make_x_axis(chronological[0][0], chronological[-1][0]), make_y_axis(low, high)
    days = _list_day_ticks(chronological[0][1], chronological[-1][1])
    content = draw_axes(
        x,
        y,
        ("when it was entered (UTC)", "OOD score (%)" if share else scores[0].metric),
        days,
        [(value, f"{100 * value:g}" if share else f"{value:g}") for value in list_ticks(low, high, 5)],
    )
    content += [
        draw_marker(0, x.at(moment), y.at(entry.ood.value), hollow=True) for moment, _, _, entry in chronological
    ]
    best_points = [(x.at(moment), y.at(value)) for moment, value, *_ in best]
    content.append(draw_path("c1 curve", make_step_corners([*best_points, (x.last, best_points[-1][1])])))
    for moment, value, _, name, entry in best:
        content.append(draw_line("c1 bar", x.at(moment), y.at(entry.ood.low), x.at(moment), y.at(entry.ood.high)))
        content.append(draw_marker(1, x.at(moment), y.at(value), f"{name}: {format_score(value, bounds)}"))
    rows = tuple(
        (
            time,
            name,
            format_score(value, bounds),
            f"[{format_score(entry.ood.low, bounds)}, {format_score(entry.ood.high, bounds)}]",
        )
        for _, value, time, name, entry in best
    )
    return Figure(
        draw_svg(content, "The best OOD score over time"),
        "History of the best",
        "Squares and line: the best OOD score so far, with 95 % intervals; circles: all entries. A new best may not "
        "differ significantly from the previous one: see the table.",
        ("entered", "entry", "OOD", "95 % interval"),
        rows,
    )


def _list_day_ticks(first: str, last: str) -> list[tuple[float, str]]:
    """Return the ticks of the time axis: its two ends, labelled by day, or by minute within one day."""
    length = 10 if first[:10] != last[:10] else 16
    marks = []
    for time in (first, last):
        marks.append((datetime.fromisoformat(time).timestamp(), time[:length].replace("T", " ")))
    return marks
