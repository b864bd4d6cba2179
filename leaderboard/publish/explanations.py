"""Small figures that explain the statistics, with made-up numbers that are the same on every board."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from .display import format_range
from .svg import Figure, Plot

_ROW = 26
"""Height of a row."""

_RANKED = (
    ("A", 66.0, 1, 1, "a"),
    ("B", 58.0, 2, 3, "b"),
    ("C", 56.5, 2, 4, "bc"),
    ("D", 53.0, 3, 4, "c"),
    ("E", 31.0, 5, 5, "d"),
)
"""Entries with score, lowest and highest rank, and tie groups."""


@cache
def make_explanations() -> dict[str, Figure]:
    """Return the figures by name."""
    repeats = ((61.0, 4.2), (58.4, 4.0), (63.1, 4.4), (55.2, 4.1), (60.3, 3.9), (64.9, 4.2))
    return {
        "interval": _draw_intervals(
            "An interval",
            "Six repeats of one experiment, each with other test rows and other training seeds; dashed: the true "
            "score. Of many such 95 % intervals, 95 in 100 contain it. Here the fourth and the sixth do not.",
            [(f"repeat {k}", value, value - half, value + half, 1) for k, (value, half) in enumerate(repeats, 1)],
            ("repeat", "score", "low", "high"),
            true=60,
        ),
        "gap": _draw_intervals(
            "The gap has a separate interval",
            "The gap is ID minus OOD. A seed with a high ID score often has a high OOD score too, so the gap varies "
            "less between seeds than the two scores. Subtracting the ends of the two intervals would give 23 to 39, "
            "which is too wide.",
            [("ID", 92.0, 90.0, 94.0, 0), ("OOD", 61.0, 55.0, 67.0, 1), ("gap", 31.0, 26.5, 35.5, 2)],
        ),
        "paired": _draw_intervals(
            "Paired differences",
            "The intervals of A and B overlap, and yet A is better: both predicted the same rows, and a row that is "
            "hard for A is mostly hard for B. The difference on the same rows is known more precisely than either "
            "score; its interval does not contain 0. Do not compare two entries by whether their intervals overlap.",
            [("model A", 61.0, 56.0, 66.0, 1), ("model B", 57.0, 52.0, 62.0, 1), ("A minus B", 4.0, 2.2, 5.8, 2)],
        ),
        "ranks": _draw_ranks(),
        "ties": _draw_ties(),
        "line": _draw_line(),
    }


def _make_plot(names: Sequence[str], x: tuple[float, float], left: int, foot: int = 26) -> Plot:
    """Return a plot with a row for each name, at 0, 1, .. from the top."""
    plot = Plot(x, (len(names) - 0.5, -0.5), height=10 + _ROW * len(names) + foot, margins=(10, 24, foot, left))
    for k, name in enumerate(names):
        plot.draw("text", "strong", {"x": 112, "y": plot.y.at(k) + 4, "text-anchor": "end"}, text=name)
    return plot


def _draw_intervals(
    title: str,
    caption: str,
    rows: Sequence[tuple[str, float, float, float, int]],
    head: Sequence[str] = ("what", "value", "low", "high"),
    true: float | None = None,
) -> Figure:
    """Draw rows of a name, a value, its interval and its series, on a scale from 0 to 100."""
    plot = _make_plot([name for name, *_ in rows], (0, 100), 120)
    plot.draw_columns([(tick, str(tick)) for tick in (0, 25, 50, 75, 100)])
    for k, (_, value, low, high, series) in enumerate(rows):
        plot.draw_line(f"c{series} bar", (low, k), (high, k))
        plot.draw_marker(series, value, k, hollow=series == 0)
    if true is not None:
        plot.draw_line("equal", (true, plot.y.low), (true, plot.y.high))
    return plot.finish(title, caption, head, [(row[0], *(f"{number:.1f}" for number in row[1:4])) for row in rows])


def _draw_ranks() -> Figure:
    plot = _make_plot([f"{name} ({score:g})" for name, score, *_ in _RANKED], (0.5, 5.5), 120)
    plot.draw_columns([(rank, f"rank {rank}") for rank in range(1, 6)])
    for k, (_, _, low, high, _) in enumerate(_RANKED):
        plot.draw_box("c2 fill", (low - 0.2, k - 0.25), (high + 0.2, k + 0.25), look={"rx": 5})
    return plot.finish(
        "Rank sets",
        "A bar covers the ranks that an entry may have: with 95 % simultaneous confidence all bars contain the true "
        "ranks. A is first. B, C and D have different scores, but the data do not determine which of them is second. "
        "The first entry in a list of scores is often first by chance; a rank set shows this.",
        ("entry", "score", "rank set"),
        [(name, f"{score:g}", format_range(low, high)) for name, score, low, high, _ in _RANKED],
    )


def _draw_ties() -> Figure:
    plot = _make_plot([f"{name} ({score:g})" for name, score, *_ in _RANKED], (-1, 9), 120, foot=10)
    for column, letter in enumerate("abcd"):
        tied = [k for k, entry in enumerate(_RANKED) if letter in entry[4]]
        for k in tied:
            plot.write(letter, column, k, css="strong", dy=4)
        plot.draw_line("c2 bar", (column + 0.3, tied[0] - 0.3), (column + 0.3, tied[-1] + 0.3))
    return plot.finish(
        "Tie groups",
        "Two entries that share a letter do not differ significantly; two that share none do. C is tied with B and "
        "with D, although B and D differ significantly: ties are not transitive.",
        ("entry", "score", "letters"),
        [(name, f"{score:g}", ties) for name, score, _, _, ties in _RANKED],
    )


def _draw_line() -> Figure:
    points = ((55, 30), (63, 37), (70, 44), (78, 52), (86, 61), (93, 70), (74, 62))
    plot = Plot((40, 100), (20, 90), height=254, margins=(14, 240, 44, 56))
    plot.draw_axes(("ID score", "OOD score"), [], [])
    plot.draw_line("axis", (40, 20), (40, 90))
    plot.draw_line("equal", (40, 40), (90, 90))
    plot.draw_line("fit", (48, 23), (97, 73))
    for on_id, on_ood in points:
        plot.draw_marker(int(on_id == 74), on_id, on_ood)
    plot.write("above the line", 74, 62, css="strong", dx=-8, dy=-10)
    return plot.finish(
        "Above the line",
        "Over many models, OOD follows ID along a line: a model with a higher ID score has a higher OOD score. A model "
        "above the line is more robust than its ID score predicts.",
        ("model", "ID", "OOD"),
        [(str(k), str(on_id), str(on_ood)) for k, (on_id, on_ood) in enumerate(points, 1)],
    )
