"""Small figures that explain the statistics, with made-up numbers that are the same on every board."""

from __future__ import annotations

from collections.abc import Sequence

from .svg import Axis, Figure, draw_label, draw_line, draw_marker, draw_svg

WIDE = 560
_X = Axis(0.0, 100.0, 120, WIDE - 24)


def make_explanations() -> dict[str, Figure]:
    """Return the figures by name."""
    return {
        "interval": _make_interval_figure(),
        "gap": _make_gap_figure(),
        "paired": _make_paired_figure(),
        "ranks": _make_ranks_figure(),
        "ties": _make_ties_figure(),
        "line": _make_line_figure(),
    }


def _draw_bars(rows: Sequence[tuple[str, float, float, float, int]], high: int) -> list[str]:
    """Draw a row for each name, value and interval on a scale from 0 to 100."""
    content = []
    for tick in (0, 25, 50, 75, 100):
        content.append(draw_line("grid", _X.at(tick), 10, _X.at(tick), high - 26))
        content.append(draw_label(_X.at(tick), high - 10, str(tick)))
    for k, (name, value, low, up, series) in enumerate(rows):
        y = 26 + 26 * k
        content.append(draw_label(112, y + 4, name, "end", "said"))
        content.append(draw_line(f"c{series} bar", _X.at(low), y, _X.at(up), y))
        content.append(draw_marker(series, _X.at(value), y, hollow=series == 0))
    return content


def _make_figure(
    content: Sequence[str], high: int, title: str, caption: str, head: Sequence[str], rows: Sequence[Sequence[str]]
) -> Figure:
    return Figure(draw_svg(content, title, WIDE, high), title, caption, tuple(head), tuple(tuple(row) for row in rows))


def _make_interval_figure() -> Figure:
    draws = [(61.0, 4.2), (58.4, 4.0), (63.1, 4.4), (55.2, 4.1), (60.3, 3.9), (64.9, 4.2)]
    rows = [(f"repeat {k + 1}", value, value - half, value + half, 1) for k, (value, half) in enumerate(draws)]
    high = 26 * len(rows) + 44
    content = _draw_bars(rows, high)
    content.append(draw_line("equal", _X.at(60), 10, _X.at(60), high - 26))
    return _make_figure(
        content,
        high,
        "An interval",
        "Six repeats of one experiment, each with other test rows and other training seeds; dashed: the true score. Of "
        "many such 95 % intervals, 95 in 100 contain it. Here the fourth and the sixth do not.",
        ("repeat", "score", "low", "high"),
        [(name, f"{v:.1f}", f"{lo:.1f}", f"{hi:.1f}") for name, v, lo, hi, _ in rows],
    )


def _make_gap_figure() -> Figure:
    rows = [
        ("ID", 92.0, 90.0, 94.0, 0),
        ("OOD", 61.0, 55.0, 67.0, 1),
        ("gap", 31.0, 26.5, 35.5, 2),
    ]
    high = 26 * len(rows) + 44
    return _make_figure(
        _draw_bars(rows, high),
        high,
        "The gap has a separate interval",
        "The gap is ID minus OOD. A seed with a high ID score often has a high OOD score too, so the gap varies "
        "less between seeds than the two scores. Subtracting the ends of the two intervals would give 23 to 39, "
        "which is too wide.",
        ("what", "value", "low", "high"),
        [(name, f"{v:.1f}", f"{lo:.1f}", f"{hi:.1f}") for name, v, lo, hi, _ in rows],
    )


def _make_paired_figure() -> Figure:
    rows = [
        ("model A", 61.0, 56.0, 66.0, 1),
        ("model B", 57.0, 52.0, 62.0, 1),
        ("A minus B", 4.0, 2.2, 5.8, 2),
    ]
    high = 26 * len(rows) + 44
    return _make_figure(
        _draw_bars(rows, high),
        high,
        "Paired differences",
        "The intervals of A and B overlap, and yet A is better: both predicted the same rows, and a row that is hard "
        "for A is mostly hard for B. The difference on the same rows is known more precisely than either score; its "
        "interval does not contain 0. Do not compare two entries by whether their intervals overlap.",
        ("what", "value", "low", "high"),
        [(name, f"{v:.1f}", f"{lo:.1f}", f"{hi:.1f}") for name, v, lo, hi, _ in rows],
    )


_RANKED = (
    ("A", 66.0, 1, 1, "a"),
    ("B", 58.0, 2, 3, "b"),
    ("C", 56.5, 2, 4, "bc"),
    ("D", 53.0, 3, 4, "c"),
    ("E", 31.0, 5, 5, "d"),
)


def _make_ranks_figure() -> Figure:
    content = []
    at = Axis(1.0, 5.0, 160, WIDE - 60)
    for rank in range(1, 6):
        content.append(draw_line("grid", at.at(rank), 14, at.at(rank), 150))
        content.append(draw_label(at.at(rank), 166, f"rank {rank}"))
    for k, (name, value, low, high, _) in enumerate(_RANKED):
        y = 26 + 26 * k
        content.append(draw_label(112, y + 4, f"{name} ({value:g})", "end", "said"))
        first, last = at.at(low) - 14, at.at(high) + 14
        content.append(f'<rect class="c2 fill" x="{first:g}" y="{y - 6}" width="{last - first:g}" height="12" rx="5"/>')
    return _make_figure(
        content,
        180,
        "Rank sets",
        "A bar covers the ranks that an entry may have: with 95 % simultaneous confidence all bars contain the true "
        "ranks. A is first. B, C and D have different scores, but the data do not determine which of them is second. "
        "The first entry in a list of scores is often first by chance; a rank set shows this.",
        ("entry", "score", "rank set"),
        [(name, f"{value:g}", f"{low}" if low == high else f"{low}–{high}") for name, value, low, high, _ in _RANKED],
    )


def _make_ties_figure() -> Figure:
    content = []
    columns = "abcd"
    for k, (name, value, _, _, ties) in enumerate(_RANKED):
        y = 26 + 26 * k
        content.append(draw_label(112, y + 4, f"{name} ({value:g})", "end", "said"))
        for column, letter in enumerate(columns):
            if letter in ties:
                content.append(draw_label(160 + 40 * column, y + 4, letter, name="said"))
    for column, letter in enumerate(columns):
        rows = [k for k, entry in enumerate(_RANKED) if letter in entry[4]]
        x = 172 + 40 * column
        content.append(draw_line("c2 bar", x, 18 + 26 * rows[0], x, 34 + 26 * rows[-1]))
    return _make_figure(
        content,
        156,
        "Tie groups",
        "Two entries that share a letter do not differ significantly; two that share none do. C is tied with B and "
        "with D, although B and D differ significantly: ties are not transitive.",
        ("entry", "score", "letters"),
        [(name, f"{value:g}", ties) for name, value, _, _, ties in _RANKED],
    )


def _make_line_figure() -> Figure:
    points = ((55, 30), (63, 37), (70, 44), (78, 52), (86, 61), (93, 70), (74, 62))
    x, y = Axis(40, 100, 60, 300), Axis(20, 90, 210, 14)
    content = [
        draw_line("axis", x.first, y.first, x.last, y.first),
        draw_line("axis", x.first, y.first, x.first, y.last),
    ]
    content += [
        draw_line("equal", x.at(40), y.at(40), x.at(90), y.at(90)),
        draw_line("fit", x.at(48), y.at(23), x.at(97), y.at(73)),
    ]
    for k, (on_id, on_ood) in enumerate(points):
        content.append(draw_marker(1 if k == 6 else 0, x.at(on_id), y.at(on_ood)))
    content.append(draw_label((x.first + x.last) / 2, 236, "ID score", name="name"))
    content.append(draw_label(x.first - 8, 24, "OOD", "end", "name"))
    content.append(draw_label(x.at(74) - 8, y.at(62) - 10, "above the line", name="said"))
    return _make_figure(
        content,
        246,
        "Above the line",
        "Over many models, OOD follows ID along a line: a model with a higher ID score has a higher OOD score. A model "
        "above the line is more robust than its ID score predicts.",
        ("model", "ID", "OOD"),
        [(str(k + 1), str(on_id), str(on_ood)) for k, (on_id, on_ood) in enumerate(points)],
    )
