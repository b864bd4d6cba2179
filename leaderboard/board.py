"""A board in a folder: submissions, their scores, and the ledger.

board.toml      name, public key, location of the ledger
ledger.sqlite   the ledger, unless it is in a PostgreSQL database
submissions/    <sha256>.zip
scores/         <entry>/<scorer>.json
                (in an object store if board.toml names one; the folder then has copies of the files that were read)
private/        the signing key and the database's URL: never published
incoming/       files of commits in progress
uploads/        submissions that a server received and has not entered yet: never published
site/           pages
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any

import tomli_w

from ..core.canonical import compute_identity
from ..core.documents import read_toml
from ..core.errors import FarshiftError, UnknownName
from ..core.files import BOARD_ADVICE, get_lock_path, hold_lock, read_private, write_atomically, write_private
from ..core.settings import read_settings
from .board_view import KINDS, PUBLIC, BoardView, is_writable
from .ledger import Record
from .ledger.book import Event, Ledger
from .ledger.keys import SigningKey, create_key
from .ledger.store import Store
from .settings import read_board_settings
from .storage.board_files import (
    INCOMING,
    find_path_problem,
    list_files,
    list_named_files,
    publish_files,
    recover_staged_files,
    resolve_file,
    stage_files,
)
from .storage.object_store import ObjectStore, open_file_store
from .validation.limits import SUBMISSION_BYTES

FORMAT = 2


class Board(BoardView):
    """A board's folder. Every change ends with an append to the ledger; its files are first written to `incoming/`."""

    has_private_files = True

    def __init__(self, path: Path | str) -> None:
        self.path, self.location = Path(path), str(path)
        self.card = _read_card(self.path)
        self.ledger = Ledger(self._store(), SigningKey(get_key_path(self.path)), str(self.card["key"]))
        self.objects: ObjectStore | None = open_file_store(self.card)
        self._mutex, self._lock_depth = RLock(), 0

    @classmethod
    def init(
        cls, path: Path | str, name: str, store: str | None = None, files: str | None = None, kind: str = PUBLIC
    ) -> Board:
        """Create a new, empty board; refuse a folder that holds anything else.

        store: the URL of a PostgreSQL database for this ledger alone (`postgresql+psycopg://USER@HOST/DATABASE`);
        SQLite in the folder by default. files: the URL of an empty folder in an object store (`s3://BUCKET/FOLDER`) for
        submissions and scores; the board's folder by default. kind: `public`, or `experiments` to rank every entry.
        """
        path = Path(path)
        if kind not in KINDS:
            raise UnknownName("kind of board", kind, KINDS)
        if not name.strip():
            raise FarshiftError("the title of a board is empty: write --name TITLE, or leave it out")
        if files is not None:
            objects = ObjectStore(files)
            if paths := objects.paths({"submissions", "scores", "sealed"}):
                raise FarshiftError(f"{objects.url} is not empty: choose an empty folder (found {paths[0]})")
        with hold_lock(get_lock_path(path), str(path)):
            if path.exists() and (not path.is_dir() or {item.name for item in path.iterdir()} - {"private"}):
                raise FarshiftError(f"{path} is not empty: choose another folder")
            where = Store(store) if store is not None else Store.in_file(path / "ledger.sqlite")
            signing = create_key(get_key_path(path))
            if store is not None:
                write_private(path / "private" / "store.url", store.encode())
            path.mkdir(parents=True, exist_ok=True)
            where.create_tables()
            ledger = Ledger(where, signing, signing.public)
            if ledger.head_hash() is not None:
                raise FarshiftError(f"{where.name} holds another board's ledger: use a database for this board alone")
            body = {"name": name, "key": signing.public} | ({} if kind == PUBLIC else {"kind": kind})
            (opened,) = ledger.append([("opened", body)])
            card = {
                "format": FORMAT,
                "name": name,
                "opened": opened.time,
                "key": signing.public,
                "store": where.dialect,
                **({} if files is None else {"files": files.rstrip("/")}),
            }
            write_atomically(path / "board.toml", tomli_w.dumps(card).encode(), BOARD_ADVICE)
        return cls(path)

    def _store(self) -> Store:
        store = open_store(self.path, self.card)
        store.require_tables()
        return store

    def read_checked(self) -> list[Record]:
        return self.ledger.records()

    def read(self) -> tuple[list[Record], list[str]]:
        # Complete or roll back unfinished commits first, unless the chain is broken.
        with suppress(FarshiftError):
            self.committed_records()
        return self.ledger.read_unchecked(), []

    def strays(self, folders: set[str]) -> list[str]:
        paths = list_files(self.path, folders) if self.objects is None else self.objects.paths(folders)
        # Nor are those strays that a record names which was appended meanwhile.
        return sorted(set(paths) - set(list_named_files(self.ledger.read_unchecked())))

    def file(self, path: str) -> Path | None:
        local_path = resolve_file(self.path, path)
        if local_path is None and self.objects is not None and not find_path_problem(path):
            content = self.objects.get(path, SUBMISSION_BYTES)
            if content is not None:
                write_atomically(self.path / path, content, BOARD_ADVICE)
                local_path = resolve_file(self.path, path)
        return local_path

    def baselines(self) -> dict[str, str]:
        return read_board_settings(self.path).baselines

    def is_open(self) -> bool:
        return read_board_settings(self.path).server.open

    @property
    def private(self) -> Path:
        """The folder of secrets (of files that only their owner may read)."""
        return self.path / "private"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the board across threads and processes, and with a ledger in PostgreSQL across machines; re-entrant.

        Commits that other processes did not finish are first completed or rolled back."""
        with self._mutex:
            if self._lock_depth:
                yield
                return
            self.ledger.store.require_writable()
            with hold_lock(self.path / "board", str(self.path)), self.ledger.store.lock_across_machines():
                if (self.path / INCOMING).is_dir():
                    # Complete or roll back unfinished commits, in the folder and in the object store.
                    for path in recover_staged_files(self.path, self.ledger.records()):
                        if self.objects is not None:
                            self.objects.delete(path)
                self._lock_depth += 1
                try:
                    yield
                finally:
                    self._lock_depth -= 1

    def enter(self, events: Sequence[Event], files: Mapping[str, bytes]) -> list[Record]:
        """Append events together with the files that their bodies name in `files` (`board_files.compute_digests`):
        atomic, also if the process is killed."""
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

    def committed_records(self) -> list[Record]:
        """Return the records once every file that they name is in place."""
        records = self.records()
        self.settle()
        return records

    def settle(self) -> None:
        """Wait until every file that the present records name is in place."""
        folder = self.path / INCOMING
        if folder.is_dir() and any(folder.iterdir()) and is_writable(self.path):
            with self.locked():
                pass


def get_key_path(path: Path) -> Path:
    """The path of a board's private key: `FARSHIFT_BOARD_KEY` if set, else in the board's folder."""
    named = read_settings().board_key
    return Path(named).expanduser() if named else path / "private" / "key.pem"


def open_store(path: Path, card: Mapping[str, Any]) -> Store:
    """Open the database of a board's ledger. `FARSHIFT_BOARD_STORE` overrides the URL of a database server."""
    if card.get("store") == "sqlite":
        return Store.in_file(path / "ledger.sqlite")
    named = read_settings().board_store
    what = "the URL of the ledger's database (or set FARSHIFT_BOARD_STORE)"
    return Store(named or read_private(path / "private" / "store.url", what).decode().strip())


def _read_card(path: Path) -> dict[str, Any]:
    if not (path / "board.toml").is_file():
        raise FarshiftError(f"{path} is not a board: create one with farshift board init {path}")
    card = read_toml(path / "board.toml")
    if card.get("format") != FORMAT or not isinstance(card.get("key"), str) or "name" not in card:
        raise FarshiftError(f"{path / 'board.toml'}: format {card.get('format')!r} is not {FORMAT} or a key is missing")
    if "store" not in card:
        raise FarshiftError(f"{path} is an export of a board and read-only: make changes on the board itself")
    return card
