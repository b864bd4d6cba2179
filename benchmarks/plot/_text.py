"""Text measurement in points (1/72 inch) in the font of the figures, and line breaking."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache

FONT = "DejaVu Sans"
"""Distributed with matplotlib, so that a figure is the same on every machine."""


@lru_cache(maxsize=4096)
def measure_width(text: str, size: float) -> float:
    """Return the width of one line of text in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    wide, _, _ = text_to_path.get_text_width_height_descent(text, FontProperties(family=FONT, size=size), ismath=False)
    return float(wide)


def wrap_text(text: str, size: float, limit: float) -> list[str]:
    """Break the text at its spaces, except non-breaking ones, into lines of at most `limit` points; a longer word is
    shortened and gets its own line."""
    lines: list[str] = []
    for word in filter(None, text.split(" ")):
        if lines and measure_width(f"{lines[-1]} {word}", size) <= limit:
            lines[-1] += f" {word}"
        else:
            lines.append(_cut_middle(word, size, limit, 0.5))
    return lines


LINES = 6
"""The maximum number of lines of a name; longer names are shortened."""


def fold_names(names: Iterable[str], size: float, limit: float) -> dict[str, str]:
    """Return each name broken into lines of at most `limit` points, preferably after a hyphen, underscore, slash or
    blank.

    A name that needs more than `LINES` lines is first shortened in the middle; different names have different texts."""
    unique = list(dict.fromkeys(names))
    lines = {name: _fold_text(name, size, limit) for name in unique}
    if max(map(len, lines.values()), default=0) > LINES:
        # A line broken at a permitted position is more than half full.
        short = shorten_names(unique, size, limit * LINES / 2)
        lines = {name: _fold_text(short[name] if len(lines[name]) > LINES else name, size, limit) for name in unique}
    return {name: "\n".join(line.strip() for line in broken) for name, broken in lines.items()}


def count_most_lines(texts: Iterable[str]) -> int:
    """Return the largest number of lines of the texts."""
    return max((text.count("\n") + 1 for text in texts), default=0)


def _fold_text(text: str, size: float, limit: float) -> list[str]:
    lines = [""]
    for piece in re.findall(r"[^-_/.,:@+ ]*[-_/.,:@+ ]+|[^-_/.,:@+ ]+", text):
        if measure_width((lines[-1] + piece).rstrip(), size) <= limit:
            lines[-1] += piece
            continue
        lines += [piece] if lines[-1] else []
        lines[-1] = lines[-1] or piece
        while measure_width(lines[-1].rstrip(), size) > limit and len(lines[-1]) > 1:
            last_line = lines[-1]
            fits = bisect_left(
                range(1, len(last_line)), True, key=lambda count: measure_width(last_line[:count], size) > limit
            )
            lines[-1:] = [last_line[: max(1, fits)], last_line[max(1, fits) :]]
    return lines


def shorten_names(names: Iterable[str], size: float, limit: float) -> dict[str, str]:
    """Return for each name a text of at most `limit` points, shortened in the middle if necessary.

    Different names have different texts: if the balanced cut removes the part in which two of them differ, the cut
    moves, and as a last resort they are numbered."""
    unique = list(dict.fromkeys(names))
    for head in (0.5, 0.25, 0.75, 0.0, 1.0):
        short = [_cut_middle(name, size, limit, head) for name in unique]
        if len(set(short)) == len(unique):
            return dict(zip(unique, short, strict=True))
    ends = [f" #{k}" for k in range(1, len(unique) + 1)]
    return {
        name: _cut_middle(name, size, limit - measure_width(end, size), 0.5) + end
        for name, end in zip(unique, ends, strict=True)
    }


def _cut_middle(text: str, size: float, limit: float, head: float) -> str:
    """Return the longest `start…end` of the text that fits; `head` is the start's share of the remaining characters."""

    def join_ends(count: int) -> str:
        start = round(count * head)
        return f"{text[:start].rstrip()}…{text[len(text) - (count - start) :].lstrip()}"

    if measure_width(text, size) <= limit:
        return text
    counts = range(1, len(text))
    return join_ends(bisect_left(counts, True, key=lambda count: measure_width(join_ends(count), size) > limit))
