"""Text for people: counts, values as TOML writes them, and untrusted text with its invisible characters written out.

Names of teams and models, reasons, an endpoint's error and the cells of a foreign export may contain escape sequences
that clear a screen, marks that reverse the order of letters, or invisible characters. All text that a terminal prints,
or a page or notebook renders, is escaped here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any


def format_count(number: int, singular: str, plural: str = "") -> str:
    """A number and what it counts: `singular` of it, or `plural`, by default `singular` with an s.

    >>> format_count(1, "seed"), format_count(0, "seed"), format_count(1200, "entry", "entries")
    ('1 seed', '0 seeds', '1,200 entries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def drop_version(name: str) -> str:
    """The name of a versioned thing as people read it; `accuracy@1` would read as top-1 accuracy.

    >>> drop_version("accuracy@1")
    'accuracy'
    """
    return name.partition("@")[0]


def write_inline(value: Any) -> str:
    """A table, list, text, number or truth value in one line of TOML.

    >>> write_inline({"duplicates": {"train/ood_test": 57}, "names": ["a", "b"]})
    '{ duplicates = { "train/ood_test" = 57 }, names = ["a", "b"] }'
    """
    if isinstance(value, Mapping):
        items = ", ".join(f"{_format_key(key)} = {write_inline(item)}" for key, item in value.items())
        return f"{{ {items} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(write_inline, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _format_key(key: str) -> str:
    return key if re.fullmatch("[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)


LINES = "\n\t"
"""What a text of several lines may hold besides."""


def escape_untrusted(text: str, allowed: str = "") -> str:
    """The text with every character that is not printable, but those of `allowed`, written as Python escapes it:
    control characters, directions of writing, zero widths, separators of lines, halves of pairs."""
    return _escape(text, allowed, lambda character: character.encode("unicode_escape", "surrogatepass").decode())


def escape_untrusted_json(text: str) -> str:
    """A JSON document with such characters as JSON escapes them, so that it says the same."""
    return _escape(text, LINES, _escape_character_json)


def _escape(text: str, allowed: str, escape: Callable[[str], str]) -> str:
    def escape_match(match: re.Match[str]) -> str:
        return match[0] if match[0] in allowed or _is_harmless(match[0]) else escape(match[0])

    return re.sub("[^ -~]", escape_match, text)


def _is_harmless(character: str) -> bool:
    # Spaces of other widths, private and unassigned characters are not printable for Python; they harm nobody.
    return character.isprintable() or unicodedata.category(character) in ("Zs", "Co", "Cn")


def _escape_character_json(character: str) -> str:
    pair = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{pair[at : at + 4]}" for at in range(0, len(pair), 4))
