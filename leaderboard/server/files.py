"""Files of submissions that are not entered yet: `uploads/` in the board's folder, readable only by its owner. A board
with an object store keeps them there too, as `whole/<id>.zip` in `uploads/`, so that any machine can score them; the
folder then has files that this machine receives, and copies."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from ...core.files import BOARD_ADVICE, fsync_folder, translate_os_errors
from ..storage.board_files import UPLOADS
from ..storage.object_store import ObjectStore

if TYPE_CHECKING:
    from ..board import Board
    from .queue import Queue

SPARE = 64 << 20
"""Bytes of free disk space that submissions may not use."""

ID = re.compile(r"[0-9a-f]{64}")
_FILE = re.compile(r"\.?([0-9a-f]{64})\.(zip|part|[0-9a-f]{8})")
_COMPLETE = "whole"
_HOUR = 3600.0


class UploadFiles:
    """A board's uploaded files by id (256 random bits): partial while they are received (`part`), then complete
    (`complete_path`). Raises `Unavailable` if the object store, if there is one, does not respond."""

    def __init__(self, board: Board) -> None:
        self.folder = board.path / UPLOADS
        self.objects = None if board.objects is None else ObjectStore(f"{board.objects.url}/{UPLOADS}")
        self._seen: dict[str, float] = {}

    def new(self) -> str:
        """Create an unguessable id and an empty file for it."""
        id = secrets.token_hex(32)
        with translate_os_errors(self.folder, BOARD_ADVICE):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(self.part(id), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return id

    def part(self, id: str) -> Path:
        return self.folder / f".{id}.part"

    def complete_path(self, id: str) -> Path:
        return self.folder / f"{id}.zip"

    def here(self, id: str) -> Path | None:
        """Return the path of a complete file on this machine, downloading it if necessary; None if there is none."""
        path = self.complete_path(id)
        if not path.is_file() and self.objects is not None:
            coming = self.folder / f".{id}.{secrets.token_hex(4)}"
            with translate_os_errors(self.folder, BOARD_ADVICE):
                self.folder.mkdir(mode=0o700, exist_ok=True)
                if self.objects.fetch(_get_object_path(id), coming):
                    coming.replace(path)
        return path if path.is_file() else None

    def has_room(self, size: int) -> bool:
        """Return whether the disk has enough free space for `size` more bytes."""
        return shutil.disk_usage(self.folder.parent).free >= size + SPARE

    def finish(self, id: str) -> None:
        """Mark a file as complete. When this returns, it is stored durably: on the disk, and in the object store."""
        with translate_os_errors(self.folder, BOARD_ADVICE):
            with self.part(id).open("rb") as file:
                os.fsync(file.fileno())
            self.part(id).replace(self.complete_path(id))
            fsync_folder(self.folder)
        if self.objects is not None:
            self.objects.send(_get_object_path(id), self.complete_path(id))

    def drop(self, id: str) -> None:
        """Delete a file everywhere."""
        self.clear(id)
        if self.objects is not None:
            self.objects.delete(_get_object_path(id))

    def clear(self, id: str) -> None:
        """Delete a file on this machine."""
        for path in (self.complete_path(id), *self.folder.glob(f".{id}.*")):
            path.unlink(missing_ok=True)

    def ids(self) -> dict[str, float]:
        """Return all ids with a file, and the seconds since the last known write to each. Stores report write times in
        different ways, so the age of an object counts from when this process first saw it."""
        ages: dict[str, float] = {}
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            name = _FILE.fullmatch(path.name)
            try:
                age = time.time() - path.stat().st_mtime
            except FileNotFoundError:  # just deleted
                continue
            if name is not None:
                ages[name[1]] = min(age, ages.get(name[1], age))
        stored = [] if self.objects is None else self.objects.paths({_COMPLETE})
        self._seen = {
            id: self._seen.get(id, time.monotonic()) for id in (Path(path).name.removesuffix(".zip") for path in stored)
        }
        return ages | {id: time.monotonic() - since for id, since in self._seen.items()}


def _get_object_path(id: str) -> str:
    return f"{_COMPLETE}/{id}.zip"


def lock_arriving(file: BinaryIO) -> None:
    """Mark an open file as arriving until it is closed, or its process ends."""
    with suppress(OSError):  # a file system without locks
        fcntl.flock(file, fcntl.LOCK_EX)


def measure_arriving(queue: Queue, files: UploadFiles) -> Counter[str]:
    """Return how many bytes this disk has yet to receive of submissions that are arriving, by owner. Submissions that a
    killed process was receiving are released."""
    coming = Counter[str]()
    for id, (owner, size) in queue.arriving().items():
        for path in (files.part(id), files.complete_path(id)):
            with suppress(FileNotFoundError), path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    coming[owner] += max(0, size - path.stat().st_size)
                else:
                    if queue.release(id):  # else it was queued since the list was read
                        files.clear(id)
    return coming


def sweep_files(queue: Queue, files: UploadFiles) -> None:
    """Delete files without a job that are over an hour old: left by killed processes and disconnected clients."""
    queue.settle()
    measure_arriving(queue, files)
    needed = {*queue.arriving(), *(job.id for job in queue.jobs(("queued", "running")))}
    for id, age in files.ids().items():
        if id not in needed and age > _HOUR:
            files.drop(id)
