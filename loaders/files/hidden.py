"""Hidden files, which are not data: those that systems and tools add to folders, and all names that begin with a
dot."""

from __future__ import annotations

from collections.abc import Sequence

DESKTOP_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")
"""Files that operating systems add to folders they display. `FolderFiles` does not list them."""

_SYSTEMS = {
    *map(str.lower, DESKTOP_FILES),
    "ehthumbs.db",
    "__macosx",
    "@eadir",
    "$recycle.bin",
    "system volume information",
}


def is_hidden(path: str) -> bool:
    """Whether a file, by its path in a folder or archive, is hidden or in a hidden folder: `.ipynb_checkpoints`,
    `._000.png`, `__MACOSX`, `Thumbs.db`."""
    return any(step.startswith(".") or step.lower() in _SYSTEMS for step in path.split("/"))


def describe_hidden(where: str, paths: Sequence[str]) -> str:
    """Return a line with the number of ignored hidden files, and an example."""
    first = min(paths)
    count = f"1 hidden file is ignored: {first}" if len(paths) == 1 else None
    return f"{where}: {count or f'{len(paths):,} hidden files are ignored, such as {first}'}"
