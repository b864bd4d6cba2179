"""List, verify and clear the cache."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...core.documents import read_json
from ...core.errors import FarshiftError, UnknownName
from ...core.files import compute_file_sha256, get_cache_root, translate_os_errors
from ...core.progress import report_progress
from .entries import KINDS, REMADE, Entry, list_entries, lock_entry, read_cache_limit, remove_entry


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
    advice: str = ""

    @property
    def holds(self) -> bool:
        return self.state in ("intact", "busy")


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
        verdict = Verdict(entry.kind, str(marker.with_suffix("")), state)
        if not verdict.holds:
            again = f"remove {marker}: the file will be rebuilt or fetched again when needed"
            verdict = replace(verdict, advice=again)
        if state != "gone":
            verdicts.append(verdict)
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
