"""Text of strangers, made fit to be shown: what a terminal or a page would obey or hide is written out instead.

Names of teams and models, reasons, an endpoint's error and the cells of a foreign export may hold escape
sequences that clear a screen, marks that turn the order of letters round, or characters that nobody sees. Whatever is
shown passes here at the edge: what a terminal prints, what a page or a notebook renders.
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
