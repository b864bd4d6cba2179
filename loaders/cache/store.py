"""The local cache: content-addressed files, and rows decoded once into memory-mapped columns.

Every write goes to a temporary neighbour and is renamed into place, under a lock per target, so a killed or a
second process never leaves or sees half a file. A stored file carries a marker: its sha256, size, mtime and inode. A
disk, a cable or a copy may change bytes and leave size and times as they were, so the sha256 is compared when a process
first opens the file, and the file is rebuilt where it differs. This is for what disks do, not people: who may write a
file may write its marker. A marker's own time of change says when the file was last used. What is in use is not
removed: see `entries.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from ...core.errors import FarshiftError
from ...core.files import compute_file_sha256, hold_lock, translate_os_errors, write_atomically
from ...core.progress import log_message
from .entries import keep_in_use, mark_in_use
from .limit import keep_within_limit, read_cache_limit

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_DAY = 86_400.0

LARGE = 2**30
"""Bytes from which on a file is compared by the first process of a day, not by each: that would take seconds."""

Verify = Literal["always", "open", "never"]
VERIFY_MODES: tuple[Verify, ...] = get_args(Verify)
"""When stored files are compared with their sha256: whenever they are opened, when a process first opens them, or only
where time or inode are not those noted."""

_verify_mode: ContextVar[Verify | None] = ContextVar("when stored files are compared with their sha256", default=None)


def read_verify_mode() -> Verify:
    """That of the innermost `use_verify_mode`, else of `FARSHIFT_VERIFY`, else `open`."""
    by_variable = os.environ.get("FARSHIFT_VERIFY", "").strip() or "open"
    return _verify_mode.get() or _check_mode(by_variable, "FARSHIFT_VERIFY")


@contextmanager
def use_verify_mode(mode: Verify | None) -> Iterator[None]:
    """Compare what is opened while the context lasts in this mode; as before where `mode` is None. `FarshiftError` for
    what is no mode."""
    token = _verify_mode.set(_verify_mode.get() if mode is None else _check_mode(mode, "verify"))
    try:
        yield
    finally:
        _verify_mode.reset(token)


def _check_mode(mode: str, what: str) -> Verify:
    for known in VERIFY_MODES:
        if mode == known:
            return known
    raise FarshiftError(f"{what}: {mode!r} is none of {', '.join(VERIFY_MODES)}")


def _find_marker(path: Path) -> Path:
    return path.with_name(path.name + ".ok")


def _read_stamp(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns, state.st_ino]


def write_marker(path: Path, digest: str) -> None:
    """Note that `path` was found to have this sha256."""
    noted: dict[str, Any] = {"sha256": digest, "stamp": _read_stamp(path)}
    if path.stat().st_size > LARGE:
        noted["compared"] = int(time.time())
    write_atomically(_find_marker(path), json.dumps(noted).encode())


_compared: dict[Path, list[int]] = {}
"""The stamps of the files that this process has compared with their sha256."""


def is_intact(path: Path) -> bool:
    """Whether `path` is what was once stored there: of the size that its marker notes, and of its sha256, which is
    compared when the process first asks, or as `FARSHIFT_VERIFY` says. Counts as a use of it."""
    mark_in_use(path)
    mode = read_verify_mode()
    try:
        marker, stamp = json.loads(_find_marker(path).read_text("utf-8")), _read_stamp(path)
        if stamp[0] != marker["stamp"][0]:
            return False
        noted = marker["stamp"] == stamp
        if mode == "always" or not (_compared.get(path) == stamp or (noted and _is_trusted(marker, mode))):
            _compared.pop(path, None)
            if compute_file_sha256(path) != marker["sha256"]:
                return False
            _compared[path] = stamp
            if not noted or stamp[0] > LARGE:
                with suppress(OSError, FarshiftError):  # a cache that may only be read
                    write_marker(path, marker["sha256"])
                return True
        with suppress(OSError):
            os.utime(_find_marker(path))
    except (OSError, ValueError, LookupError, TypeError):
        return False
    return True


def _is_trusted(marker: dict[str, Any], mode: Verify) -> bool:
    """Whether a file of the size, time and inode that its marker notes is not compared: never, or, a large one, not
    again on the same day."""
    return mode == "never" or 0 <= time.time() - marker.get("compared", 0) < _DAY


def load_or_build_table(path: Path, build: Callable[[], pa.Table]) -> pa.Table:
    """The Arrow table stored at `path`, memory-mapped; built and stored first where it is absent or damaged."""
    return load_or_write_table(path, lambda target: write_arrow(build(), target))


def load_or_write_table(path: Path, write: Callable[[Path], object]) -> pa.Table:
    """The Arrow file at `path`, memory-mapped. Where it is absent or damaged, `write` makes it: a temporary file first,
    which is then flushed and renamed."""
    return load_or_write(path, write, map_table)


def load_or_write(path: Path, write: Callable[[Path], object], read: Callable[[Path], T]) -> T:
    """What `read` makes of the file at `path`, written first as in `load_or_write_table` where it is absent or
    damaged."""
    read_cache_limit()  # a wrong one is refused before any work
    built = False
    with keep_in_use() as outermost:
        if not is_intact(path):
            with hold_lock(path):
                if not is_intact(path):
                    if path.exists():
                        log_message(f"{path} was cut off or changed: building it again")
                    _write_file(path, write)
                    built = True
        value = read(path)
    if outermost:
        keep_within_limit(built)
    return value


def map_table(path: Path) -> pa.Table:
    """The table of an Arrow file, memory-mapped."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def make_write_options() -> pa.ipc.IpcWriteOptions:
    """How one record batch is written, however long its arrays are."""
    import pyarrow as pa

    return pa.ipc.IpcWriteOptions(allow_64bit=True)


def write_arrow(table: pa.Table, target: Path) -> None:
    """Write a table as an Arrow file of one record batch, by one big write: mapped, it reads at memory speed."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=make_write_options()) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(1, table.num_rows))
    with target.open("wb") as file:
        file.write(memoryview(sink.getvalue()))


def _write_file(path: Path, write: Callable[[Path], object]) -> None:
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with translate_os_errors(path):
        try:
            write(temporary)
            move_into_cache(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def move_into_cache(temporary: Path, path: Path) -> None:
    """Move a finished file to its place in the cache: on the disk first, then renamed and marked."""
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    digest = compute_file_sha256(temporary)
    temporary.replace(path)
    write_marker(path, digest)


def store_bytes(path: Path, content: bytes) -> None:
    """Store a small file with its marker; `is_intact` tells whether it is still what it was."""
    _find_marker(path).unlink(missing_ok=True)
    write_atomically(path, content)
    write_marker(path, sha256(content).hexdigest())
