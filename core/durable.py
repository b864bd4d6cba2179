"""Files of a board: they outlive a power cut, and only its owner may read its signing key, a database's password and a
sealed draw's seed."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import FarshiftError
from .files import translate_os_errors

ADVICE = "put the board on another disk"
"""What to do where the disk is full or may not be written."""


def fsync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk, so that what was renamed into it outlives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_private(path: Path, content: bytes) -> None:
    """Write `content` in one piece, with mode 600 from the first byte on; its folder gets mode 700 where it is made."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with translate_os_errors(path, ADVICE):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # of a killed process that had this number
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        fsync_folder(path.parent)


def read_private(path: Path, what: str) -> bytes:
    """The content; `FarshiftError` where there is none, or where others may read it too."""
    try:
        mode = path.stat().st_mode & 0o777
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise FarshiftError(f"{path}, {what}, is missing: put it back") from error
    except OSError as error:
        raise FarshiftError(f"{path}, {what}, cannot be read: {error.strerror}") from error
    if mode & 0o077:
        raise FarshiftError(f"{path}, {what}, is readable by others (mode {mode:o}): chmod 600 {path}")
    return content
