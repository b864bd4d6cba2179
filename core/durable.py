"""What makes a board's files outlive a power cut."""

from __future__ import annotations

import os
from pathlib import Path

ADVICE = "put the board on another disk"
"""What to do where the disk is full or may not be written."""


def fsync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk, so that what was renamed into it outlives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
