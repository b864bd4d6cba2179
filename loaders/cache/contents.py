"""The cache as its owner sees it: what lies there, whether it is still what it was, and clearing it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError, UnknownName
from ...core.files import cache_root, file_sha256, plain_disk_errors
from ...core.progress import advance
from .entries import KINDS, REMADE, Entry, alone, entries, remove
from .limit import cache_limit

_DAY = 86_400.0


def contents() -> dict[str, Any]:
    """What the cache holds: `cache` (its folder), `limit` and `bytes`, for each of `kinds` the number of
    `entries` and their bytes; and a record of each entry, least recently used first. Responses are many and small: only
    their sum is reported."""
    with plain_disk_errors(cache_root()):
        found = sorted(entries(), key=lambda entry: (entry.used, entry.kind, entry.name))
    kinds = {kind: [entry for entry in found if entry.kind == kind] for kind in KINDS}
    return {
        "cache": str(cache_root()),
        "limit": cache_limit(),
        "bytes": sum(entry.bytes for entry in found),
        "kinds": {
            kind: {"entries": len(some), "bytes": sum(entry.bytes for entry in some)} for kind, some in kinds.items()
        },
        "entries": [record(entry) for entry in found if entry.kind != "responses"],
    }


def record(entry: Entry) -> dict[str, Any]:
    """An entry for people and programs; `last_used` in UTC."""
    used = datetime.fromtimestamp(entry.used, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    where = str(entry.path)
    return {"kind": entry.kind, "name": entry.name, "bytes": entry.bytes, "last_used": used, "path": where}


@dataclass(frozen=True)
class Verdict:
    """What was found of one marked file. `state`: `intact`, `changed`, `missing`, `unreadable` (it or its marker), or
    `busy`: another process is writing it."""

    kind: str
    path: str
    state: str
    advice: str = ""

    @property
    def holds(self) -> bool:
        return self.state in ("intact", "busy")


def verify() -> list[Verdict]:
    """Hash every marked file and compare with its marker. Changes nothing and counts as no use."""
    with plain_disk_errors(cache_root()):
        marked = [(entry, marker) for entry in entries() for marker in entry.markers()]
    found = []
    for number, (entry, marker) in enumerate(marked, start=1):
        state = _state(entry, marker)
        again = f"remove {marker}: the file is then made or fetched again when it is needed"
        verdict = Verdict(entry.kind, str(marker.with_suffix("")), state)
        if state != "gone":
            found.append(verdict if verdict.holds else replace(verdict, advice=again))
        advance("verifying the cache", number, len(marked))
    return found


def _state(entry: Entry, marker: Path) -> str:
    try:
        with alone(entry) as free:
            return _compared(marker) if free else "busy"
    except OSError:  # no lock can be made in a cache that may only be read; nobody writes there either
        return _compared(marker)


def _compared(marker: Path) -> str:
    """The state of a marked file; `gone` where the entry was removed since it was listed."""
    try:
        expected = json.loads(marker.read_text("utf-8"))["sha256"]
    except FileNotFoundError:
        return "gone"
    except (OSError, ValueError, KeyError, TypeError):
        return "unreadable"
    try:
        return "intact" if file_sha256(marker.with_suffix("")) == expected else "changed"
    except FileNotFoundError:
        return "missing"
    except OSError:
        return "unreadable"


@dataclass
class Cleared:
    """What `clear` removed, and what it left with the reason."""

    removed: list[Entry] = field(default_factory=list)
    left: list[tuple[Entry, str]] = field(default_factory=list)

    @property
    def bytes(self) -> int:
        return sum(entry.bytes for entry in self.removed)


def clear(
    kinds: Sequence[str] = (), older_than: float | None = None, everything: bool = False, dry_run: bool = False
) -> Cleared:
    """Remove entries: of these kinds, or last used more than `older_than` days ago, or both at once, or `everything`.

    Responses were paid for: they go only where their kind is named, or with `everything`. What a process uses or works
    on is left. `dry_run` removes nothing and tells what would go. Raises `FarshiftError` where nothing says what to
    clear, `UnknownName` for an unknown kind.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise UnknownName("kind of cache entry", kind, KINDS)
    if everything and (kinds or older_than is not None):
        raise FarshiftError("--all clears everything: leave out --kind and --older-than")
    if not everything and not kinds and older_than is None:
        raise FarshiftError("say what to clear: --kind KIND, --older-than DAYS, or --all")
    if older_than is not None and older_than < 0:
        raise FarshiftError(f"--older-than: {older_than:g} days is less than none: name a number from 0 up")
    before = None if older_than is None else time.time() - older_than * _DAY
    cleared = Cleared()
    with plain_disk_errors(cache_root()):
        for entry in entries(*(KINDS if everything else kinds or REMADE)):
            if before is not None and entry.used > before:
                continue
            why = "" if dry_run else remove(entry)
            if why:
                cleared.left.append((entry, why))
            else:
                cleared.removed.append(entry)
    return cleared
