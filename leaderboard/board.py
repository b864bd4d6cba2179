"""A board in a folder: submissions, their scores, and the ledger.

board.toml      name, public key, where the ledger is
ledger.sqlite   the ledger, where it does not lie in a PostgreSQL database
submissions/    <sha256>.zip
scores/         <entry>/<scorer>.json
                (these lie in an object store where board.toml names one; the folder then has copies of what was read)
private/        the signing key, a database's address: never published
incoming/       files that are being entered
uploads/        what a server was handed in and has not entered yet: never published
site/           pages
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any

import tomli_w

from ..core.canonical import compute_identity
from ..core.durable import ADVICE
from ..core.errors import FarshiftError
from ..core.files import get_lock_path, hold_lock, write_atomically
from ..core.plugins import read_toml
from ..core.private import read_private, write_private
from .board_view import BoardView, get_derived_folder, is_writable
from .ledger import Ledger, Record
from .ledger.book import Event
from .ledger.keys import SigningKey, create_key
from .ledger.migrate import migrate_store, require_current
from .ledger.store import Store
from .settings import read_baselines
from .storage.board_files import (
    INCOMING,
    find_path_problem,
    publish_files,
    recover_staged_files,
    resolve_file,
    stage_files,
)
from .storage.object_store import ObjectStore, open_file_store
from .validation.limits import SUBMISSION_BYTES

FORMAT = 2


class Board(BoardView):
    """A board's folder. Every change ends with an append to the ledger; files come first, in `incoming/`."""

    def __init__(self, path: Path | str) -> None:
        self.path, self.location = Path(path), str(path)
        self.card = _read_card(self.path)
        self.ledger = Ledger(self._store(), SigningKey(get_key_path(self.path)), str(self.card["key"]))
        self.objects: ObjectStore | None = open_file_store(self.card)
        self._mutex, self._lock_depth = RLock(), 0

    @classmethod
    def init(cls, path: Path | str, name: str, store: str | None = None, files: str | None = None) -> Board:
        """Make a new, empty board; refuses a folder that holds something else. A killed `init` can be repeated.

        store: the URL of a PostgreSQL database of its own for the ledger (`postgresql+psycopg://USER@HOST/DATABASE`);
        SQLite in the folder by default. files: the URL of an empty folder in an object store (`s3://BUCKET/FOLDER`) for
        submissions and scores; the board's folder by default.
        """
        path = Path(path)
        if files is not None:
            _require_empty(ObjectStore(files))
        with hold_lock(get_lock_path(path), str(path)):
            begun = {"private", "ledger.sqlite", "ledger.sqlite-journal"}
            if path.exists() and (not path.is_dir() or {item.name for item in path.iterdir()} - begun):
                raise FarshiftError(f"{path} exists and is not empty: choose another folder")
            where = Store(store) if store is not None else Store.in_file(path / "ledger.sqlite")
            signing = create_key(get_key_path(path))
            if store is not None:
                write_private(path / "private" / "store.url", store.encode())
            path.mkdir(parents=True, exist_ok=True)
            for left in ("ledger.sqlite", "ledger.sqlite-journal"):
                (path / left).unlink(missing_ok=True)
            migrate_store(where)
            opened = _append_opening(Ledger(where, signing, signing.public), name)
            card = {
                "format": FORMAT,
                "name": name,
                "opened": opened.time,
                "key": signing.public,
                "store": where.dialect,
                **({} if files is None else {"files": files.rstrip("/")}),
            }
            write_atomically(path / "board.toml", tomli_w.dumps(card).encode(), ADVICE)
        return cls(path)

    def _store(self) -> Store:
        store = open_store(self.path, self.card)
        require_current(store, self.path)
        return store

    def records(self) -> list[Record]:
        return self.ledger.records()

    @property
    def derived(self) -> Path:
        """In its folder, or, where that may only be read, in the user's cache."""
        return self.path / "derived" if is_writable(self.path) else get_derived_folder()

    def file(self, path: str) -> Path | None:
        local_path = resolve_file(self.path, path)
        if local_path is None and self.objects is not None and not find_path_problem(path):
            content = self.objects.get(path, SUBMISSION_BYTES)
            if content is not None:
                write_atomically(self.path / path, content, ADVICE)
                local_path = resolve_file(self.path, path)
        return local_path

    def baselines(self) -> dict[str, str]:
        return read_baselines(self.path)

    @property
    def private(self) -> Path:
        """The folder of secrets (`core/private.py` writes and reads files there)."""
        return self.path / "private"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the board among threads and processes, and with its ledger in PostgreSQL among machines; may be nested.
        What killed ones left is first finished or cleared away."""
        with self._mutex:
            if self._lock_depth:
                yield
                return
            with hold_lock(self.path / "board", str(self.path)), self.ledger.store.lock_across_machines():
                if (self.path / INCOMING).is_dir():
                    self._recover()
                self._lock_depth += 1
                try:
                    yield
                finally:
                    self._lock_depth -= 1

    def enter(self, events: Sequence[Event], files: Mapping[str, bytes]) -> list[Record]:
        """Append events together with the files that they name in `files` of their bodies
        (`kept_files.compute_digests`): all of it or nothing, also for a process that is killed."""
        named: dict[str, str] = {}
        for _, body in events:
            named |= body.get("files", {})
        wrong = sorted(path for path, content in files.items() if named.get(path) != sha256(content).hexdigest())
        if wrong or set(named) != set(files):
            raise ValueError(f"files and records differ: {wrong or sorted(set(named) ^ set(files))}")
        with self.locked():
            staged = stage_files(self.path, compute_identity(named), files) if files else None
            if self.objects is not None:
                for path, content in sorted(files.items()):
                    self.objects.put(path, content)
            added = self.ledger.append(events)
            if staged is not None:
                publish_files(self.path, staged, named)
        return added

    def _recover(self) -> None:
        """Finish or clear away what killed processes left, in the folder and in the store."""
        for path in recover_staged_files(self.path, self.ledger.records()):
            if self.objects is not None:
                self.objects.delete(path)

    def committed_records(self) -> list[Record]:
        """The records, when every file that they name has come to its place."""
        records = self.ledger.records()
        self.settle()
        return records

    def records_since(self, last: Record) -> list[Record]:
        """The records after one that was read before, when every file that they name has come to its place;
        `FarshiftError` where the ledger does not go on from it."""
        records = self.ledger.records_since(last)
        if records:
            self.settle()
        return records

    def settle(self) -> None:
        """Wait until every file that a record names by now has come to its place."""
        folder = self.path / INCOMING
        if folder.is_dir() and any(folder.iterdir()) and is_writable(self.path):
            with self.locked():
                pass


def get_key_path(path: Path) -> Path:
    """Where a board's private key lies: in the file that `FARSHIFT_BOARD_KEY` names, else in its folder."""
    named = os.environ.get("FARSHIFT_BOARD_KEY", "")
    return Path(named).expanduser() if named else path / "private" / "key.pem"


def open_store(path: Path, card: Mapping[str, Any]) -> Store:
    """Where the ledger of a board lies. `FARSHIFT_BOARD_STORE` replaces the URL of one in a database server."""
    if card.get("store") == "sqlite":
        return Store.in_file(path / "ledger.sqlite")
    named = os.environ.get("FARSHIFT_BOARD_STORE", "")
    what = "the address of the database that holds its ledger (or set FARSHIFT_BOARD_STORE)"
    return Store(named or read_private(path / "private" / "store.url", what).decode().strip())


def _require_empty(objects: ObjectStore) -> None:
    folders = {"submissions", "scores", "challenges", "sealed"}
    if paths := objects.paths(folders):
        raise FarshiftError(f"{objects.url} holds files already ({paths[0]}): choose an empty folder in the store")


def migrate_board(path: Path | str) -> tuple[str | None, str | None]:
    """Bring a board's ledger to this version's schema. Returns the schema before and after it."""
    path = Path(path)
    return migrate_store(open_store(path, _read_card(path)))


def _read_card(path: Path) -> dict[str, Any]:
    if not (path / "board.toml").is_file():
        raise FarshiftError(f"{path} is not a board: make one with farshift board init {path}")
    card = read_toml(path / "board.toml")
    if card.get("format") != FORMAT or not isinstance(card.get("key"), str) or "name" not in card:
        raise FarshiftError(f"{path / 'board.toml'}: format {card.get('format')!r} is not {FORMAT}, or it lacks a key")
    if "store" not in card:
        raise FarshiftError(f"{path} is an export of a board: read it, verify it, but change the board itself")
    return card


def _append_opening(ledger: Ledger, name: str) -> Record:
    """Append the opening, unless an `init` that was killed had come so far; the record of it."""
    records = ledger.store.records()
    if not records:
        records = ledger.append([("opened", {"name": name, "key": ledger.key})])
    elif len(records) > 1 or records[0].body != {"name": name, "key": ledger.key}:
        raise FarshiftError(f"{ledger.store.name} holds another board's ledger: give this board a database of its own")
    return records[0]
