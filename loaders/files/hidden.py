"""Hidden files, which are no data: what systems and tools leave in folders, and all names that begin with a dot."""

from __future__ import annotations

from collections.abc import Sequence

DESKTOP_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")
"""Files that operating systems write into any folder that they show: `FolderFiles` does not list them at all."""

_SYSTEMS = {
    *map(str.lower, DESKTOP_FILES),
    "ehthumbs.db",
    "__macosx",
    "@eadir",
    "$recycle.bin",
    "system volume information",
}


def is_hidden(path: str) -> bool:
    """Whether a file, by its path in a folder or archive, is hidden or lies in a hidden folder: `.ipynb_checkpoints`,
    `._000.png`, `__MACOSX`, `Thumbs.db`."""
    return any(step.startswith(".") or step.lower() in _SYSTEMS for step in path.split("/"))


def describe_hidden(where: str, paths: Sequence[str]) -> str:
    """One line that says how many hidden files were left out, and which for example."""
    first = min(paths)
    count = f"1 hidden file is left out: {first}" if len(paths) == 1 else None
    return f"{where}: {count or f'{len(paths):,} hidden files are left out, such as {first}'}"
