"""Files of submissions that are not entered yet, for a board with an object store: `whole/<id>.zip` in `uploads/` of
the store, so that any machine can score them. The local folder has files that this machine receives, and copies.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ....core.durable import ADVICE
from ....core.files import translate_os_errors
from ...storage.board_files import UPLOADS
from ...storage.object_store import ObjectStore
from .files import UploadFiles

if TYPE_CHECKING:
    from ...board import Board

COMPLETE = "whole"


def open_upload_files(board: Board) -> UploadFiles:
    """Return the storage of a board's uploaded files."""
    if board.objects is None:
        return UploadFiles(board.path)
    return StoredFiles(board.path, ObjectStore(f"{board.objects.url}/{UPLOADS}"))


class StoredFiles(UploadFiles):
    """Like `UploadFiles`, in an object store. Raises `Unavailable` if the store does not respond."""

    def __init__(self, board: Path, objects: ObjectStore) -> None:
        super().__init__(board)
        self.objects = objects
        self._seen: dict[str, float] = {}

    def here(self, id: str) -> Path | None:
        there = super().here(id) is not None or self._fetched(_get_object_path(id), self.complete_path(id))
        return self.complete_path(id) if there else None

    def _fetched(self, path: str, file: Path) -> bool:
        """Download an object into a file atomically. Returns False if there is no object."""
        coming = self.folder / f".{file.name.strip('.').partition('.')[0]}.{secrets.token_hex(4)}"
        with translate_os_errors(self.folder, ADVICE):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            fetched = self.objects.fetch(path, coming)
            if fetched:
                coming.replace(file)
        return fetched

    def finish(self, id: str) -> None:
        self.settle(id)
        self.objects.send(_get_object_path(id), self.complete_path(id))

    def drop(self, id: str) -> None:
        self.clear(id)
        self.objects.delete(_get_object_path(id))

    def ids(self) -> dict[str, float]:
        """Like `UploadFiles.ids`. Stores report write times in different ways, so the age of an object counts from when
        this process first saw it."""
        there = {path.split("/")[1].removesuffix(".zip") for path in self.objects.paths({COMPLETE})}
        self._seen = {id: self._seen.get(id, time.monotonic()) for id in there}
        return super().ids() | {id: time.monotonic() - since for id, since in self._seen.items()}


def _get_object_path(id: str) -> str:
    return f"{COMPLETE}/{id}.zip"
