"""The entries of the cache: listed, verified, kept within a limit, and removed so that it is safe while others read.

An entry is stored and removed as a unit: a fetched file, a decoded source, a split's rows, decoded images, an encoder's
features, tokens of texts, a response; with its marker and the leftovers of a killed process. Links and files of other
names are ignored, since they do not belong to the cache.

Readers never wait for a removal: what is memory-mapped stays readable without its file, and a file that is removed
before it is opened is built again.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from ...core.documents import read_json
from ...core.errors import FarshiftError, UnknownName
from ...core.files import compute_file_sha256, get_cache_root, translate_os_errors, try_hold_lock
from ...core.progress import log_message, report_progress
from ...core.settings import read_settings

_NAMES = {
    "files": r"[0-9a-f]{64}",
    "trees": r"[0-9a-f]{40}",
    "sources": r"[^.].*?\.arrow",
    "splits": r"[^.].*?\.arrow",
    "images": r"[0-9a-f]{64}\.npy",
    "features": r".+-[0-9a-f]{16}",
    "tokens": r".+-[0-9a-f]{16}\.arrow",
    "responses": r"[0-9a-f]{64}\.json",
}
"""By kind, which is the name of a folder, the pattern of an entry's name. Its other files have that name with an
ending, and may begin with a dot."""

KINDS = tuple(_NAMES)
REMADE = tuple(kind for kind in KINDS if kind != "responses")
"""The kinds that can be rebuilt at no cost, unlike responses."""


@dataclass(frozen=True)
class Entry:
    """An entry: its files and folders (without locks), their bytes, and when it was last used (seconds since 1970: the
    newest marker's modification time, else the newest file's)."""

    kind: str
    path: Path
    pieces: tuple[Path, ...]
    bytes: int
    used: float

    @property
    def name(self) -> str:
        return self.path.name

    def markers(self) -> list[Path]:
        return sorted(file for file in _list_files(self.pieces) if file.suffix == ".ok")


def list_entries(*kinds: str) -> list[Entry]:
    """Return the entries of these kinds (default: all), sorted by kind and name."""
    entries = []
    for kind in (kind for kind in KINDS if not kinds or kind in kinds):
        items = _list_folder(get_cache_root() / kind)
        if kind in ("files", "responses"):
            items = [item for folder in items for item in _list_folder(folder)]
        pieces: dict[Path, list[Path]] = {}
        for item in items:
            named = re.fullmatch(rf"\.?({_NAMES[kind]})(?:\..+)?", item.name)
            if named and item.suffix != ".lock" and (kind != "features" or item.is_dir()):
                pieces.setdefault(item.with_name(named[1]), []).append(item)
        for path in sorted(pieces):
            states: dict[Path, os.stat_result] = {}
            for file in _list_files(pieces[path]):
                with suppress(FileNotFoundError):  # another process has just removed it
                    states[file] = file.lstat()
            if states:
                marked = [state for file, state in states.items() if file.suffix == ".ok"]
                used = max(state.st_mtime for state in marked or states.values())
                size = sum(state.st_size for state in states.values())
                entries.append(Entry(kind, path, tuple(pieces[path]), size, used))
    return entries


def _list_folder(folder: Path) -> list[Path]:
    """The files and folders in a folder, except links; none if it is a file, a link or absent."""
    if folder.is_symlink() or not folder.is_dir():
        return []
    return sorted(item for item in folder.iterdir() if not item.is_symlink())


def _list_files(pieces: Sequence[Path]) -> list[Path]:
    """Those of the pieces that are files, and all files of the others; no links."""
    below = [_list_files(_list_folder(piece)) if piece.is_dir() else [piece] for piece in pieces]
    return [file for files in below for file in files]


@contextmanager
def lock_entry(entry: Entry) -> Iterator[bool]:
    """Acquire the lock that writers of this entry use. Yields False, without waiting, if another process has it."""
    if entry.kind == "responses":  # written by a single rename
        yield True
        return
    with try_hold_lock(entry.path) as free:
        yield free


def remove_entry(entry: Entry) -> str:
    """Remove an entry. Returns "" on success, else the reason: another process works on it, or the operating system
    refuses.

    Lock files are not removed: removing one that another process is about to acquire would let two processes hold it.
    """
    try:
        with lock_entry(entry) as free:
            if not free:
                return "another process works on it"
            for marker in entry.markers():  # first, so that no reader trusts half an entry
                marker.unlink(missing_ok=True)
            for piece in entry.pieces:
                if piece.is_dir():
                    shutil.rmtree(piece)
                else:
                    piece.unlink(missing_ok=True)
    except OSError as error:
        return f"it cannot be removed: {error.strerror or error}"
    return ""


_UNITS = {"": 1, "B": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("KMGT", start=1)
    for ending, base in (("", 1000), ("B", 1000), ("IB", 1024))
}


def parse_size(text: str, what: str) -> int:
    """Parse a size such as `10GB`, `500 MB`, `1.5 GiB` or `4096` to bytes. Raises `FarshiftError` for any other text.
    `what` is the setting's name."""
    parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if parts is None or parts[2].upper() not in _UNITS:
        raise FarshiftError(f"{what}: {text!r} is not a size: write for example 10GB, 500MB or 2GiB")
    size = int(float(parts[1]) * _UNITS[parts[2].upper()])
    if size < 1:
        raise FarshiftError(f"{what}: {text!r} is less than one byte: give a size above 0, or omit it")
    return size


def format_size(size: int) -> str:
    """Format a size in decimal units: `1.2 GB`."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.1f} {unit}"
    return f"{size} bytes"


def read_cache_limit() -> int | None:
    """Return the limit of `FARSHIFT_CACHE_LIMIT` in bytes; None if it is not set."""
    named = read_settings().cache_limit
    return parse_size(named, "FARSHIFT_CACHE_LIMIT") if named else None


def keep_within_limit(written: bool) -> None:
    """If something was `written`, remove entries, least recently used first, until the cache fits its limit. Responses
    are not counted and not removed, since they cost money."""
    limit = read_cache_limit()
    if limit is None or not written:
        return
    freed = 0
    try:
        with FileLock(get_cache_root() / "limit.lock"):
            entries = list_entries(*REMADE)
            excess = sum(entry.bytes for entry in entries) - limit
            for entry in sorted(entries, key=lambda entry: (entry.used, entry.kind, entry.name)):
                if freed < excess and not remove_entry(entry):
                    freed += entry.bytes
    except OSError as error:
        log_message(f"the cache's limit could not be enforced: {error}")
    if freed:
        log_message(f"FARSHIFT_CACHE_LIMIT: removed least recently used entries ({format_size(freed)})")


def list_contents() -> dict[str, Any]:
    """Return the contents of the cache: `cache` (its folder), `limit` and `bytes`; for each of `kinds` the number of
    entries and their bytes; and a record of each entry, least recently used first. Responses are many and small, so
    only their sum is reported."""
    with translate_os_errors(get_cache_root()):
        all_entries = sorted(list_entries(), key=lambda entry: (entry.used, entry.kind, entry.name))
    kinds = {kind: [entry for entry in all_entries if entry.kind == kind] for kind in KINDS}
    return {
        "cache": str(get_cache_root()),
        "limit": read_cache_limit(),
        "bytes": sum(entry.bytes for entry in all_entries),
        "kinds": {
            kind: {"entries": len(some), "bytes": sum(entry.bytes for entry in some)} for kind, some in kinds.items()
        },
        "entries": [describe_entry(entry) for entry in all_entries if entry.kind != "responses"],
    }


def describe_entry(entry: Entry) -> dict[str, Any]:
    """Return an entry as JSON values; `last_used` is in UTC."""
    used = datetime.fromtimestamp(entry.used, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    where = str(entry.path)
    return {"kind": entry.kind, "name": entry.name, "bytes": entry.bytes, "last_used": used, "path": where}


@dataclass(frozen=True)
class Verdict:
    """The state of a file with a marker: `intact`, `changed`, `missing`, `unreadable` (the file or its marker), or
    `busy` (another process is writing it)."""

    kind: str
    path: str
    state: str

    @property
    def holds(self) -> bool:
        return self.state in ("intact", "busy")

    @property
    def advice(self) -> str:
        again = f"remove {self.path}.ok: the file will be rebuilt or fetched again when needed"
        return "" if self.holds else again


def verify_cache() -> list[Verdict]:
    """Hash every file that has a marker and compare. Changes nothing, and does not count as a use."""
    with translate_os_errors(get_cache_root()):
        marked = [(entry, marker) for entry in list_entries() for marker in entry.markers()]
    verdicts = []
    for number, (entry, marker) in enumerate(marked, start=1):
        try:
            with lock_entry(entry) as free:
                state = _compare_file(marker) if free else "busy"
        except OSError:  # a read-only cache has no locks, and no writers either
            state = _compare_file(marker)
        if state != "gone":
            verdicts.append(Verdict(entry.kind, str(marker.with_suffix("")), state))
        report_progress("verifying the cache", number, len(marked))
    return verdicts


def _compare_file(marker: Path) -> str:
    """The state of a file with a marker; `gone` if the entry was removed since it was listed."""
    try:
        expected = read_json(marker)["sha256"]
    except FileNotFoundError:
        return "gone"
    except (OSError, ValueError, KeyError, TypeError):
        return "unreadable"
    try:
        return "intact" if compute_file_sha256(marker.with_suffix("")) == expected else "changed"
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "unreadable"


@dataclass
class ClearReport:
    """The entries that `clear_cache` removed, and those that it left, with the reason."""

    removed: list[Entry] = field(default_factory=list)
    left: list[tuple[Entry, str]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.removed)


def clear_cache(
    kinds: Sequence[str] = (), older_than: float | None = None, everything: bool = False, dry_run: bool = False
) -> ClearReport:
    """Remove entries: of these kinds, last used more than `older_than` days ago, or both; or `everything`.

    Responses cost money: they are removed only by naming their kind, or with `everything`. Entries that are being
    written are left. `dry_run` removes nothing and reports what would be removed. Raises `FarshiftError` if no
    criterion is given, `UnknownName` for an unknown kind.
    """
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise UnknownName("kind of cache entry", unknown[0], KINDS)
    if everything and (kinds or older_than is not None):
        raise FarshiftError("--all clears everything: omit --kind and --older-than")
    if not everything and not kinds and older_than is None:
        raise FarshiftError("give what to clear: --kind KIND, --older-than DAYS, or --all")
    if older_than is not None and older_than < 0:
        raise FarshiftError(f"--older-than: {older_than:g} days is negative: give a number from 0 up")
    before = time.time() - (older_than or 0) * 86_400
    cleared = ClearReport()
    with translate_os_errors(get_cache_root()):
        for entry in list_entries(*(KINDS if everything else kinds or REMADE)):
            if older_than is not None and entry.used > before:
                continue
            if why := "" if dry_run else remove_entry(entry):
                cleared.left.append((entry, why))
            else:
                cleared.removed.append(entry)
    return cleared
