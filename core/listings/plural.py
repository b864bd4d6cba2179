"""Numbers with the noun that they count, in messages and tables."""

from __future__ import annotations


def format_count(number: int, singular: str, plural: str = "") -> str:
    """A number and what it counts: `singular` of it, or `plural`, by default `singular` with an s.

    >>> format_count(1, "seed"), format_count(0, "seed"), format_count(1200, "entry", "entries")
    ('1 seed', '0 seeds', '1,200 entries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
