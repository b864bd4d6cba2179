"""The files of submissions on their way, of a board whose files lie in an object store: in `uploads/` of the store, so
that any machine goes on with an upload, and any scores it.

Each request's bytes of an upload are an object of their own, `parts/<id>/<first byte>-<byte after the last>`; a whole
file is `whole/<id>.zip`. The folder on a machine holds what is coming in to it, and copies.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.durable import ADVICE
from ....core.errors import FarshiftError
from ....core.files import plain_disk_errors
from ...storage.board_files import UPLOADS
from ...storage.object_store import ObjectStore
from .files import UploadFiles

if TYPE_CHECKING:
    from ...board import Board

PARTS, WHOLE = "parts", "whole"


def upload_files(board: Board) -> UploadFiles:
    """Where a board keeps what is handed in."""
    if board.objects is None:
        return UploadFiles(board.path)
    return StoredFiles(board.path, ObjectStore(f"{board.objects.url}/{UPLOADS}"))


class StoredFiles(UploadFiles):
    """As `UploadFiles`, kept in a store. Raises `Unavailable` where that does not answer."""

    def __init__(self, board: Path, objects: ObjectStore) -> None:
        super().__init__(board)
        self.objects = objects
        self._seen: dict[str, float] = {}

    def start(self, id: str, offset: int) -> int:
        with plain_disk_errors(self.folder, ADVICE):  # it may have begun on another machine
            self.folder.mkdir(mode=0o700, exist_ok=True)
            os.close(os.open(self.part(id), os.O_WRONLY | os.O_CREAT, 0o600))
        return 0

    def keep(self, id: str, start: int, size: int) -> None:
        # Two servers that take bytes from the same place on write two objects: the database says whose count.
        self.objects.send(f"{PARTS}/{id}/{start}-{start + size}", self.part(id))

    def gathered(self, id: str, size: int) -> tuple[Path, bool]:
        if self._fetched(_whole(id), self.whole(id)):
            return self.whole(id), True
        spans = _chain(self.objects.paths({f"{PARTS}/{id}"}), size)
        if not spans:
            raise FarshiftError(f"{self.objects.url}/{PARTS}/{id[:12]}..: parts of an upload of {size} bytes are lost")
        part = self.part(id)
        if spans == [(0, size)] and part.is_file() and part.stat().st_size == size:
            return part, False
        self.start(id, 0)
        with plain_disk_errors(self.folder, ADVICE), part.open("wb") as out:
            for first, last in spans:
                piece = self.folder / f".{id}.{secrets.token_hex(4)}"
                if not self._fetched(f"{PARTS}/{id}/{first}-{last}", piece):
                    raise FarshiftError(f"{self.objects.url}/{PARTS}/{id[:12]}..: bytes {first} to {last} are lost")
                with piece.open("rb") as content:
                    shutil.copyfileobj(content, out, 1 << 20)
                piece.unlink()
        return part, False

    def here(self, id: str) -> Path | None:
        there = super().here(id) is not None or self._fetched(_whole(id), self.whole(id))
        return self.whole(id) if there else None

    def _fetched(self, path: str, file: Path) -> bool:
        """Bring an object into a file, whole or not at all; False where there is none."""
        coming = self.folder / f".{file.name.strip('.').partition('.')[0]}.{secrets.token_hex(4)}"
        with plain_disk_errors(self.folder, ADVICE):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            found = self.objects.fetch(path, coming)
            if found:
                coming.replace(file)
        return found

    def finish(self, id: str) -> None:
        self.settle(id)
        self.objects.send(_whole(id), self.whole(id))
        self._drop_parts(id)

    def drop(self, id: str) -> None:
        self.clear(id)
        self.objects.delete(_whole(id))
        self._drop_parts(id)

    def _drop_parts(self, id: str) -> None:
        for path in self.objects.paths({f"{PARTS}/{id}"}):
            self.objects.delete(path)

    def ids(self) -> dict[str, float]:
        """As of a folder. Stores say in ways of their own when an object was written: here it is since when this
        process knows of it."""
        there = {path.split("/")[1].removesuffix(".zip") for path in self.objects.paths({PARTS, WHOLE})}
        self._seen = {id: self._seen.get(id, time.monotonic()) for id in there}
        return super().ids() | {id: time.monotonic() - since for id, since in self._seen.items()}


def _whole(id: str) -> str:
    return f"{WHOLE}/{id}.zip"


def _chain(paths: list[str], size: int) -> list[tuple[int, int]]:
    """Parts that follow one another from the first byte to the last, among those of an upload; none where there are
    none. What was sent to a server that died before it could say so may lie beside them."""
    spans = sorted(_span(path) for path in paths)
    before: dict[int, tuple[int, int] | None] = {0: None}
    for first, last in spans:
        if first in before and last > first:
            before.setdefault(last, (first, last))
    found: list[tuple[int, int]] = []
    step = before.get(size)
    while step is not None:
        found.append(step)
        step = before[step[0]]
    return found[::-1]


def _span(path: str) -> tuple[int, int]:
    first, _, last = path.rpartition("/")[2].partition("-")
    return int(first), int(last)
