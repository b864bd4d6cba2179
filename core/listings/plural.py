"""Numbers with the noun that they count, in messages and tables."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what it counts: `one` of it, or `many`, by default `one` with an s.

    >>> counted(1, "seed"), counted(0, "seed"), counted(1200, "entry", "entries")
    ('1 seed', '0 seeds', '1,200 entries')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
