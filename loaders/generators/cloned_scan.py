"""SCAN in two languages: English commands, and the same in a clone of English whose words are all others.

A clone has the same grammar and meanings and not one word in common, so it is exactly as hard; whatever a model does
worse in it comes of having seen less of it (Schäfer et al. 2024, arXiv 2404.07982).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .scan import commands

if TYPE_CHECKING:
    import pyarrow as pa


def rows() -> pa.Table:
    """Columns `command`, `actions`, `language` (`original` or `clone`) and `meaning`: the command in the original
    words. 41,820 rows."""
    import pyarrow as pa

    found = commands()
    cloned = [" ".join(f"{word}'" for word in command.split()) for command in found]
    return pa.table(
        {
            "command": [*found, *cloned],
            "actions": [*found.values()] * 2,
            "language": ["original"] * len(found) + ["clone"] * len(found),
            "meaning": [*found] * 2,
        }
    )
