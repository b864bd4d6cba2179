"""The local cache: content-addressed files, and rows decoded once into memory-mapped columns.

Every write goes to a temporary neighbour and is renamed into place, under a lock per target, so a killed or a
second process never leaves or sees half a file. A stored file carries a marker (its sha256, the CRC-32 of its blocks,
its size, mtime and inode): when a process first opens the file its blocks are compared (`blocks.py`), and it is rebuilt
where they differ. A marker's own time of change says when the file was last used. What is in use is not removed: see
`entries.py`.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ...core.errors import FarshiftError
from ...core.files import cache_root as cache_root
from ...core.files import file_sha256, locked, plain_disk_errors, write_atomically
from ...core.files import lock_is_free as lock_is_free
from ...core.progress import say
from .blocks import BLOCK, LARGE, Verify, digests, fits, verify_when
from .entries import one_call, use
from .limit import cache_limit, keep_within_limit

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

_DAY = 86_400.0


def _marker(path: Path) -> Path:
    return path.with_name(path.name + ".ok")


def _stamp(path: Path) -> list[int]:
    state = path.stat()
    return [state.st_size, state.st_mtime_ns, state.st_ino]


def mark(path: Path, digest: str, blocks: Sequence[int] | None = None) -> None:
    """Note that `path` was found to have this sha256, and its blocks these CRC-32s (which are computed by default)."""
    each = digests(path)[1] if blocks is None else list(blocks)
    noted: dict[str, Any] = {"sha256": digest, "stamp": _stamp(path), "block": BLOCK, "crc32": each}
    if path.stat().st_size > LARGE:
        noted["compared"] = int(time.time())
    write_atomically(_marker(path), json.dumps(noted).encode())


_compared: dict[Path, list[int]] = {}
"""The stamps of the files that this process has compared with their checksums."""


def intact(path: Path) -> bool:
    """Whether `path` is what was once stored there, by the checksums of its blocks; they are compared when the process
    first asks, or as `FARSHIFT_VERIFY` says (`blocks.py`). Counts as a use of it."""
    use(path)
    way = verify_when()
    try:
        marker, stamp = json.loads(_marker(path).read_text("utf-8")), _stamp(path)
        known = marker["stamp"] == stamp and marker.get("block") == BLOCK
        if way == "always" or not (_compared.get(path) == stamp or (known and _believed(marker, way))):
            _compared.pop(path, None)
            fit = marker.get("block") == BLOCK and fits(path, marker.get("crc32", ()))
            # Where no checksums say that the file is whole its sha256 decides: those of an older version are not
            # there, and the marker itself lies on a disk too.
            if not fit and file_sha256(path) != marker["sha256"]:
                return False
            _compared[path] = stamp
            if not (fit and known) or stamp[0] > LARGE:
                with suppress(OSError, FarshiftError):  # a cache that may only be read
                    mark(path, marker["sha256"], marker["crc32"] if fit else None)
                return True
        with suppress(OSError):
            os.utime(_marker(path))
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return True


def _believed(marker: dict[str, Any], way: Verify) -> bool:
    """Whether a file of the size, time and inode that its marker notes is not compared: never, or, a large one, not
    again on the same day."""
    return way == "never" or 0 <= time.time() - marker.get("compared", 0) < _DAY


def stored_table(path: Path, build: Callable[[], pa.Table]) -> pa.Table:
    """The Arrow table stored at `path`, memory-mapped; built and stored first where it is absent or damaged."""
    return stored_file(path, lambda target: write_arrow(build(), target))


def stored_file(path: Path, write: Callable[[Path], object]) -> pa.Table:
    """The Arrow file at `path`, memory-mapped. Where it is absent or damaged, `write` makes it: a temporary file first,
    which is then flushed and renamed."""
    return stored(path, write, memory_mapped)


def stored(path: Path, write: Callable[[Path], object], opened: Callable[[Path], T]) -> T:
    """What `opened` makes of the file at `path`, written first as in `stored_file` where it is absent or damaged."""
    cache_limit()  # a wrong one is refused before any work
    built = False
    with one_call() as outermost:
        if not intact(path):
            with locked(path):
                if not intact(path):
                    if path.exists():
                        say(f"{path} was cut off or changed: building it again")
                    _write(path, write)
                    built = True
        found = opened(path)
    if outermost:
        keep_within_limit(built)
    return found


def memory_mapped(path: Path) -> pa.Table:
    """The table of an Arrow file, memory-mapped."""
    import pyarrow as pa

    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def one_batch_options() -> pa.ipc.IpcWriteOptions:
    """How one record batch is written, however long its arrays are."""
    import pyarrow as pa

    return pa.ipc.IpcWriteOptions(allow_64bit=True)


def write_arrow(table: pa.Table, target: Path) -> None:
    """Write a table as an Arrow file of one record batch, by one big write: mapped, it reads at memory speed."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema, options=one_batch_options()) as writer:
        writer.write_table(table.combine_chunks(), max_chunksize=max(1, table.num_rows))
    with target.open("wb") as file:
        file.write(memoryview(sink.getvalue()))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    for leftover in path.parent.glob(f".{path.name}.*.tmp"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with plain_disk_errors(path):
        try:
            write(temporary)
            keep(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


def keep(temporary: Path, path: Path) -> None:
    """Move a finished file to its place in the cache: on the disk first, then renamed and marked."""
    with temporary.open("rb+") as file:
        os.fsync(file.fileno())
    digest, blocks = digests(temporary)
    temporary.replace(path)
    mark(path, digest, blocks)


def store_bytes(path: Path, content: bytes) -> None:
    """Store a small file with its marker; `intact` tells whether it is still what it was."""
    _marker(path).unlink(missing_ok=True)
    write_atomically(path, content)
    mark(path, sha256(content).hexdigest())
