"""The files of submissions on their way: `uploads/` in the board's folder, which only its owner may read. Of a board
whose files lie in an object store they lie there too (`stored_files.py`)."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.durable import ADVICE, fsync_folder
from ....core.files import translate_os_errors
from ...storage.board_files import UPLOADS

if TYPE_CHECKING:
    from .queue import Queue

SPARE = 64 << 20
"""Bytes of the disk that no submission is taken to."""

ID = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"\.?([0-9a-f]{64})\.(zip|part|[0-9a-f]{8})")
_HOUR = 3600.0


class UploadFiles:
    """A file while it comes in (`part`) and when it is whole (`whole`), by its id: 256 random bits."""

    def __init__(self, board: Path) -> None:
        self.folder = board / UPLOADS

    def new(self) -> str:
        """An id that nobody can guess, and an empty file for it."""
        id = secrets.token_hex(32)
        with translate_os_errors(self.folder, ADVICE):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(self.part(id), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return id

    def part(self, id: str) -> Path:
        return self.folder / f".{id}.part"

    def complete_path(self, id: str) -> Path:
        return self.folder / f"{id}.zip"

    def here(self, id: str) -> Path | None:
        """A finished file, on this machine; None where there is none."""
        return self.complete_path(id) if self.complete_path(id).is_file() else None

    def has_room(self, size: int) -> bool:
        """Whether the disk has room for so many bytes more."""
        return shutil.disk_usage(self.folder.parent).free >= size + SPARE

    def finish(self, id: str) -> None:
        """What came in is whole, and kept when this returns: on the disk, or in the store."""
        self.settle(id)

    def settle(self, id: str) -> None:
        """What came in is whole, and on the disk of this machine when this returns."""
        with translate_os_errors(self.folder, ADVICE):
            with self.part(id).open("rb") as file:
                os.fsync(file.fileno())
            self.part(id).replace(self.complete_path(id))
            fsync_folder(self.folder)

    def drop(self, id: str) -> None:
        """Nothing of it is needed any more."""
        self.clear(id)

    def clear(self, id: str) -> None:
        """Nothing of it is needed on this machine any more."""
        for path in (self.complete_path(id), *self.folder.glob(f".{id}.*")):
            path.unlink(missing_ok=True)

    def ids(self) -> dict[str, float]:
        """Every id with a file, and for how many seconds nothing was written to it that is known of."""
        ages: dict[str, float] = {}
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            name = _FILE.fullmatch(path.name)
            try:
                age = time.time() - path.stat().st_mtime
            except FileNotFoundError:  # just cleared away
                continue
            if name is not None:
                ages[name[1]] = min(age, ages.get(name[1], age))
        return ages


def describe_missing_files(queue: Queue, files: UploadFiles) -> str:
    """What to say where submissions are queued whose files are not on this machine; else nothing."""
    lost = sum(files.here(job.id) is None for job in queue.jobs(("queued",)))
    if not lost:
        return ""
    return (
        f"{lost} queued submissions have no file in {files.folder}: machines that share a database share the board's "
        "folder too, or have its files in an object store (farshift board init --files)"
    )


def sweep_files(queue: Queue, files: UploadFiles) -> None:
    """Clear away what killed processes and clients that went away left: files of no job, once an hour old."""
    queue.settle()
    needed = {job.id for job in queue.jobs(("queued", "running"))}
    for id, age in files.ids().items():
        if id not in needed and age > _HOUR:
            files.drop(id)
