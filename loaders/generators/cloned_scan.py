"""SCAN in two languages: English commands, and the same commands in a clone of English with other words.

A clone has the same grammar and meanings and no word in common, so it is exactly as hard; a model does worse in it only
because it has seen less of it (Schäfer et al. 2024, arXiv 2404.07982).
"""

from __future__ import annotations

import pyarrow as pa

from .scan import list_commands


def rows() -> pa.Table:
    """Columns `command`, `actions`, `language` (`original` or `clone`) and `meaning`: the command in the original
    words. 41,820 rows."""
    command_actions = list_commands()
    cloned = [" ".join(f"{word}'" for word in command.split()) for command in command_actions]
    return pa.table(
        {
            "command": [*command_actions, *cloned],
            "actions": [*command_actions.values()] * 2,
            "language": ["original"] * len(command_actions) + ["clone"] * len(command_actions),
            "meaning": [*command_actions] * 2,
        }
    )
