"""Unique names that are safe as parts of a path."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256


def make_slug(text: str) -> str:
    """Reduce a text to lower-case letters, digits, dots, dashes and underscores; `unnamed` if nothing remains."""
    plain = re.sub(r"[^a-z0-9._]+", "-", text.lower()).strip("-._")
    return plain[:80].rstrip("-._") or "unnamed"


def make_slugs(texts: Iterable[str]) -> dict[str, str]:
    """Return a slug for each text. Texts that would share a slug get the start of a digest appended, except a text that
    equals its slug."""
    unique = sorted(set(texts))
    texts_by_slug: dict[str, list[str]] = {}
    for text in unique:
        texts_by_slug.setdefault(make_slug(text), []).append(text)
    return {
        text: name if len(sharing) == 1 or text == name else f"{name}-{sha256(text.encode()).hexdigest()[:8]}"
        for name, sharing in texts_by_slug.items()
        for text in sharing
    }
