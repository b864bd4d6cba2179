"""The maximum size of a run, and valid names in it."""

from __future__ import annotations

from typing import Any

MAX_SEEDS = 100
MAX_CANDIDATES = 1000
MAX_TEXT = 100_000
"""Maximum seeds and candidates of a run, and characters of a predicted text, for harness and boards."""


def find_name_problem(name: Any, whose: str = "the model's name") -> str:
    """Return what is wrong with the name of a model, setting or checkpoint; empty if nothing is."""
    if isinstance(name, str) and 0 < len(name) <= 100 and name.isprintable():
        return ""
    return f"{whose} must be 1 to 100 printable characters"
