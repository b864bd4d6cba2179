"""The local cache: content-addressed files, and rows decoded once into memory-mapped columns.

Every write goes to a temporary file beside the target and is renamed, under a lock per target, so that a killed or
concurrent process never leaves or sees a partial file. A stored file has a marker: its sha256, size, mtime and inode.
A disk, a cable or a copy may change bytes without changing size and times, so the sha256 is compared when a process
first opens the file, and the file is rebuilt if it differs. This detects hardware faults, not tampering: anyone who
can write a file can write its marker. The marker's modification time is the time of the last use.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from ...core.documents import read_json
from ...core.errors import FarshiftError
from ...core.files import compute_file_sha256, get_cache_root, hold_lock, translate_os_errors, write_atomically
from ...core.progress import log_message
from ...core.settings import read_settings
from .entries import keep_within_limit, read_cache_limit

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_DAY = 86_400.0

LARGE = 2**30
"""The size in bytes from which on a file is compared once a day instead of by each process, as hashing takes
seconds."""

Verify = Literal["always", "open", "never"]
VERIFY_MODES: tuple[Verify, ...] = get_args(Verify)
"""When stored files are compared with their sha256: whenever they are opened, when a process first opens them, or only
if time or inode differ from the recorded ones."""

_verify_mode: ContextVar[Verify | None] = ContextVar("when stored files are compared with their sha256", default=None)


@contextmanager
def use_verify_mode(mode: Verify | None) -> Iterator[None]:
    """Use this mode for files opened within the context; None leaves the mode unchanged. Raises `FarshiftError` for an
    invalid mode."""
    token = _verify_mode.set(_verify_mode.get() if mode is None else _check_mode(mode, "verify"))
    try:
        yield
    finally:
        _verify_mode.reset(token)


def _check_mode(mode: str, what: str) -> Verify:
    for known in VERIFY_MODES:
        if mode == known:
            return known
    raise FarshiftError(f"{what}: invalid mode {mode!r}: choose from {', '.join(VERIFY_MODES)}")


def _read_stamp(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns, state.st_ino]


def write_marker(path: Path, digest: str) -> None:
    """Record the sha256 of `path` in its marker."""
    noted: dict[str, Any] = {"sha256": digest, "stamp": _read_stamp(path)}
    if path.stat().st_size > LARGE:
        noted["compared"] = int(time.time())
    write_atomically(Path(f"{path}.ok"), json.dumps(noted).encode())


_compared: dict[Path, list[int]] = {}
"""The stamps of the files that this process has compared with their sha256."""


def is_intact(path: Path) -> bool:
    """Whether `path` is unchanged since it was stored: it has the size in its marker, and the sha256, which is compared
    at the first check in a process, or as set by `FARSHIFT_VERIFY`. Counts as a use."""
    mode = _verify_mode.get() or _check_mode(read_settings().verify, "FARSHIFT_VERIFY")
    try:
        marker, stamp = read_json(Path(f"{path}.ok")), _read_stamp(path)
        if stamp[0] != marker["stamp"][0]:
            return False
        noted = marker["stamp"] == stamp
        trusted = noted and (mode == "never" or 0 <= time.time() - marker.get("compared", 0) < _DAY)
        if mode == "always" or not (trusted or _compared.get(path) == stamp):
            _compared.pop(path, None)
            if compute_file_sha256(path) != marker["sha256"]:
                return False
            _compared[path] = stamp
            if not noted or stamp[0] > LARGE:
                with suppress(OSError, FarshiftError):  # a read-only cache
                    write_marker(path, marker["sha256"])
                return True
        with suppress(OSError):
            os.utime(f"{path}.ok")
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return True


def load_or_build_table(path: Path, build: Callable[[], pa.Table]) -> pa.Table:
    """Return the Arrow table stored at `path`, memory-mapped; built and stored first if it is absent or damaged."""
    return load_or_write(path, lambda target: write_arrow(build(), target), map_table)


def load_or_write(path: Path, write: Callable[[Path], object], read: Callable[[Path], T]) -> T:
    """Return `read(path)`. If the file is absent or damaged, `write` first writes it, to a temporary file that is
    flushed and renamed."""
    read_cache_limit()  # raises an error for an invalid limit before any work
    built = False
    while True:
        if not is_intact(path):
            with hold_lock(path):
                if not is_intact(path):
                    if path.exists():
                        log_message(f"{path} is truncated or modified: building it again")
                    for leftover in path.parent.glob(f".{path.name}.*.tmp"):  # of a killed process
                        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
                    with _stage_file(path) as temporary:
                        write(temporary)
                        move_into_cache(temporary, path)
                    built = True
        try:
            value = read(path)
        except FileNotFoundError:  # another process has just removed it
            continue
        keep_within_limit(built)
        return value


def map_table(path: Path) -> pa.Table:
    """Return the table of an Arrow file, memory-mapped."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def make_write_options() -> pa.ipc.IpcWriteOptions:
    """Return options that allow a record batch of any length."""
    import pyarrow as pa

    return pa.ipc.IpcWriteOptions(allow_64bit=True)


def write_arrow(table: pa.Table, target: Path) -> None:
    """Write a table as an Arrow file of one record batch, by one large write, so that it is fast to read when
    mapped."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=make_write_options()) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(1, table.num_rows))
    target.write_bytes(memoryview(sink.getvalue()))


def stage_source(name: str) -> AbstractContextManager[Path]:
    """Yield a temporary path for the rows of a source whose place in the cache is not known yet, to be moved there by
    `move_into_cache`; it is removed at the end of the context."""
    return _stage_file(get_cache_root() / "sources" / f"{name}.arrow")


@contextmanager
def _stage_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, removed at the end of the context."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with translate_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
        finally:
            temporary.unlink(missing_ok=True)


def move_into_cache(temporary: Path, path: Path) -> None:
    """Move a finished file to its place in the cache: it is flushed to disk, renamed, and marked."""
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    digest = compute_file_sha256(temporary)
    temporary.replace(path)
    write_marker(path, digest)
