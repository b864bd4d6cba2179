"""gSCAN: commands in a grid world and the actions that execute them, in one JSON file with a list for each part (Ruis
et al. 2020, arXiv 2003.05161)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...core.errors import BadData
from ._layout import get_archive

if TYPE_CHECKING:
    import pyarrow as pa


def read(files: dict[str, Any], *, member: str, parts: list[str]) -> pa.Table:
    """Fields: `command` and `actions` (words separated by spaces), `situation` (the grid, as JSON) and `published` (one
    of `parts`)."""
    import pyarrow as pa

    archive = get_archive(files)
    rows: dict[str, list[str]] = {name: [] for name in ("command", "actions", "situation", "published")}
    try:
        lists = json.loads(archive.read(member))["examples"]
        for part in parts:
            for example in lists[part]:
                rows["command"].append(example["command"].replace(",", " "))
                rows["actions"].append(example["target_commands"].replace(",", " "))
                rows["situation"].append(json.dumps(example["situation"], sort_keys=True, separators=(",", ":")))
                rows["published"].append(part)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadData(f"{archive.where}: {member} is not in gSCAN's format: {error!r}") from error
    return pa.table(rows)
