"""Escape untrusted text before it is shown: control and invisible characters are written out.

Names of teams and models, reasons, an endpoint's error and the cells of a foreign export may contain escape sequences
that clear a screen, marks that reverse the order of letters, or invisible characters. All text that a terminal prints,
or a page or notebook renders, is escaped here.
"""

from __future__ import annotations

import unicodedata

LINES = "\n\t"
"""What a text of several lines may hold besides."""


def escape_untrusted(text: str, allowed: str = "") -> str:
    """The text with every character that is not printable, but those of `allowed`, written as Python escapes it:
    control characters, directions of writing, zero widths, separators of lines, halves of pairs."""
    if text.isprintable():
        return text
    return "".join(
        character if character in allowed or _is_harmless(character) else _escape_character(character)
        for character in text
    )


def escape_untrusted_json(text: str) -> str:
    """A JSON document with such characters as JSON escapes them, so that it says the same."""
    if text.isprintable():
        return text
    return "".join(
        character if character in LINES or _is_harmless(character) else _escape_character_json(character)
        for character in text
    )


def _is_harmless(character: str) -> bool:
    # Spaces of other widths, private and unassigned characters are not printable for Python; they harm nobody.
    return character.isprintable() or unicodedata.category(character) in ("Zs", "Co", "Cn")


def _escape_character(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def _escape_character_json(character: str) -> str:
    pair = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pair[at : at + 4]}" for at in range(0, len(pair), 4))
