"""The best over time: each entry when it came, and the best OOD score until then."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ....benchmarks.scoring.record import Score
from ..page_pictures import SHARE, shown
from .drawing import Figure, across, drawn, frame, line, marker, path, steps, ticks, up


def history(times: Sequence[str], scores: Sequence[Score], names: Sequence[str]) -> Figure | None:
    """The OOD scores of one table by the times of the ledger's records, and the best until each; None for fewer than
    two entries, or where all came at one moment."""
    if len(scores) < 2 or len(set(times)) < 2:
        return None
    came = sorted(
        zip((datetime.fromisoformat(time).timestamp() for time in times), times, names, scores, strict=True),
        key=lambda one: (one[0], one[2]),
    )
    higher, bounds = scores[0].better == "higher", scores[0].bounds
    best: list[tuple[float, float, str, str, Score]] = []
    for moment, time, name, one in came:
        value = one.ood.value
        if not best or (value > best[-1][1] if higher else value < best[-1][1]):
            best.append((moment, value, time, name, one))
    share = bounds == SHARE
    low, high = (0.0, 1.0) if share else (min(s.ood.low for s in scores), max(s.ood.high for s in scores))
    x, y = across(came[0][0], came[-1][0]), up(low, high)
    days = _days(came[0][1], came[-1][1])
    content = frame(
        x,
        y,
        ("when it was entered (UTC)", "OOD score (%)" if share else scores[0].metric),
        days,
        [(value, f"{100 * value:g}" if share else f"{value:g}") for value in ticks(low, high, 5)],
    )
    content += [marker(0, x.at(moment), y.at(one.ood.value), hollow=True) for moment, _, _, one in came]
    reached = [(x.at(moment), y.at(value)) for moment, value, *_ in best]
    content.append(path("c1 curve", steps([*reached, (x.last, reached[-1][1])])))
    for moment, value, _, name, one in best:
        content.append(line("c1 bar", x.at(moment), y.at(one.ood.low), x.at(moment), y.at(one.ood.high)))
        content.append(marker(1, x.at(moment), y.at(value), f"{name}: {shown(value, bounds)}"))
    rows = tuple(
        (time, name, shown(value, bounds), f"[{shown(one.ood.low, bounds)}, {shown(one.ood.high, bounds)}]")
        for _, value, time, name, one in best
    )
    return Figure(
        drawn(content, "The best OOD score over time"),
        "History of the best",
        "Squares and line: the best OOD score until then, with 95 % intervals; circles: every entry. A new best need "
        "not differ significantly from the one before: see the table.",
        ("entered", "entry", "OOD", "95 % interval"),
        rows,
    )


def _days(first: str, last: str) -> list[tuple[float, str]]:
    """Where the axis of time is marked: at both ends, by their days, or by their minutes within one day."""
    length = 10 if first[:10] != last[:10] else 16
    found = []
    for time in (first, last):
        found.append((datetime.fromisoformat(time).timestamp(), time[:length].replace("T", " ")))
    return found
