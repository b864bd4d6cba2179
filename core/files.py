"""Files that are whole or absent: atomic writes, locks between processes, digests; the folder of the cache and the
user's home, which has the licences that the user accepted."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir
from threading import get_ident

from filelock import FileLock, Timeout

from .errors import FarshiftError, Unavailable
from .progress import log_message
from .settings import read_settings


def get_cache_root() -> Path:
    """`FARSHIFT_CACHE`, or `farshift` in the user's cache folder."""
    return read_settings().cache


def get_user_home() -> Path:
    """`FARSHIFT_HOME`, or `farshift` in the user's data folder: what a cache must not forget, such as the splits that
    were frozen here and the licences that were accepted."""
    return read_settings().home


def try_lock(lock: FileLock) -> bool:
    """Take the lock if nobody holds it."""
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    return True


def is_offline() -> bool:
    """Whether `FARSHIFT_OFFLINE` forbids the network."""
    return read_settings().offline


OUT_ADVICE = "choose another --out"
BOARD_ADVICE = "put the board on another disk"
"""What to do where the disk of a board is full or may not be written."""


@contextmanager
def translate_os_errors(path: Path, advice: str = "", is_saved: bool = True) -> Iterator[None]:
    """Turn errors of the operating system into one line: the path, what to do (by default, by where the path is), and
    whether finished work is kept."""
    try:
        yield
    except OSError as error:
        advice = advice or _find_setting(path) or "choose a folder on another disk, or one that you may write"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            ending = "; finished work is kept" if is_saved else ""
            raise FarshiftError(f"no space left for {path}: free some space, or {advice}{ending}") from error
        raise FarshiftError(f"{path} cannot be written: {error.strerror or error}; {advice}") from error


def _find_setting(path: Path) -> str:
    """The advice to move the folder of Farshift's own in which a path lies; "" for other paths."""
    folders = {"FARSHIFT_CACHE": get_cache_root(), "FARSHIFT_HOME": get_user_home()}
    inside = (name for name, folder in folders.items() if path.absolute().is_relative_to(folder.absolute()))
    return next((f"set {name} to another disk" for name in inside), "")


def get_lock_path(path: Path) -> Path:
    """Where the lock of something outside the cache lies: in the cache, by the path's digest, so that nothing is left
    beside it; in the folder for temporary files where the cache may only be read."""
    root = get_cache_root()
    there = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
    if there.is_dir() and not os.access(there, os.W_OK | os.X_OK):
        root = Path(gettempdir()) / f"farshift-{os.getuid() if hasattr(os, 'getuid') else 0}"
    return root / "locks" / sha256(str(path.resolve()).encode()).hexdigest()[:32]


@contextmanager
def hold_lock(path: Path, what: str = "") -> Iterator[None]:
    """Hold the lock of `path` among processes. The operating system frees it if the holder dies."""
    with translate_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{path}.lock")
        if not try_lock(lock):
            log_message(f"waiting for another process working on {what or path.name}")
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def try_hold_lock(path: Path) -> Iterator[bool]:
    """Hold the lock of `path` if it is free. Yields False, without waiting, if another process has it."""
    lock = FileLock(f"{path}.lock")
    free = try_lock(lock)
    try:
        yield free
    finally:
        if free:
            lock.release()


def write_atomically(path: Path, content: bytes | memoryview, advice: str = "", private: bool = False) -> None:
    """Write `content` beside `path` in one piece, flush it to the disk, and rename it into place. private: only the
    user may read it, from the first byte on (mode 600; 700 for a folder that is made), and it outlives a power cut."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}.tmp")
    folder_mode, mode = (0o700, 0o600) if private else (0o777, 0o666)
    with translate_os_errors(path, advice):
        path.parent.mkdir(mode=folder_mode, parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # of a killed process that had this number
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
        if private:
            fsync_folder(path.parent)


def write_private(path: Path, content: bytes) -> None:
    """Write a file of a board that only its owner may read: a signing key, a database's password, a secret seed."""
    write_atomically(path, content, _find_setting(path) or BOARD_ADVICE, private=True)


def fsync_folder(path: Path) -> None:
    """Flush a folder's entries to the disk, so that what was renamed into it outlives a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


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


def compute_file_sha256(path: Path) -> str:
    """sha256 of a file, as hexadecimal."""
    import hashlib

    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def append_digest(content: bytes) -> bytes:
    """The content and its sha256 behind it."""
    return content + sha256(content).digest()


def strip_digest(data: bytes) -> bytes:
    """What `append_digest` was given; `ValueError` where it is not that any more."""
    content = data[:-32]
    if append_digest(content) != data:
        raise ValueError("the digest does not match")
    return content


_accepted_now: ContextVar[tuple[str, ...]] = ContextVar("_given", default=())


class LicenceNotAccepted(Unavailable):
    """Data whose licence has to be accepted first."""

    licence = ""


@contextmanager
def accept_licences(licences: tuple[str, ...]) -> Iterator[None]:
    """While the context lasts, these licences count as accepted (by `--accept`); those that are asked for are
    remembered."""
    before = _accepted_now.set((*_accepted_now.get(), *licences))
    try:
        yield
    finally:
        _accepted_now.reset(before)


def require_accepted_licence(licence: str, what: str, terms: str = "") -> None:
    """`LicenceNotAccepted` where the user has not accepted a licence: with `--accept`, in `FARSHIFT_ACCEPT` (several
    are separated by commas), or earlier."""
    settings = read_settings()
    known = settings.home / "accepted.txt"
    remembered = known.read_text("utf-8").splitlines() if known.exists() else []
    if licence in remembered:
        return
    if licence in (*settings.accept, *_accepted_now.get()):
        write_atomically(known, "".join(f"{name}\n" for name in sorted({*remembered, licence})).encode())
        return
    error = LicenceNotAccepted(
        f"{what} is published under {licence}{f' ({terms})' if terms else ''}: read its terms, then repeat with "
        f"FARSHIFT_ACCEPT='{licence}' in the environment, or farshift splits pull with --accept '{licence}'"
    )
    error.licence = licence
    raise error
