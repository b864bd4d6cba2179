"""The cache's size limit: `FARSHIFT_CACHE_LIMIT`, kept after each write by removing what was used least recently."""

from __future__ import annotations

import os
import re

from filelock import FileLock

from ...core.errors import FarshiftError
from ...core.files import get_cache_root
from ...core.progress import log_message
from .entries import REMADE, list_entries, remove_entry

_UNITS = {"": 1, "B": 1} | {
    f"{letter}{ending}": base**power
    for power, letter in enumerate("KMGT", start=1)
    for ending, base in (("", 1000), ("B", 1000), ("IB", 1024))
}


def parse_size(text: str, what: str) -> int:
    """The bytes that a size such as `10GB`, `500 MB`, `1.5 GiB` or `4096` names; `FarshiftError` for any other text.
    `what` is the setting's name."""
    parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", text)
    if parts is None or parts[2].upper() not in _UNITS:
        raise FarshiftError(f"{what}: {text!r} is no size: write one such as 10GB, 500MB or 2GiB")
    size = int(float(parts[1]) * _UNITS[parts[2].upper()])
    if size < 1:
        raise FarshiftError(f"{what}: {text!r} is less than one byte: name a size above 0, or leave it out")
    return size


def format_size(size: int) -> str:
    """A size for people, in decimal units: `1.2 GB`."""
    for power, unit in ((4, "TB"), (3, "GB"), (2, "MB"), (1, "kB")):
        if size >= 1000**power:
            return f"{size / 1000**power:.1f} {unit}"
    return f"{size} bytes"


def read_cache_limit() -> int | None:
    """The bytes that `FARSHIFT_CACHE_LIMIT` allows, None where it is not set."""
    named = os.environ.get("FARSHIFT_CACHE_LIMIT", "").strip()
    return parse_size(named, "FARSHIFT_CACHE_LIMIT") if named else None


def keep_within_limit(written: bool) -> None:
    """Remove entries, least recently used first, until the cache fits its limit; what a process uses or works on stays.

    Nothing is looked at unless something was `written`, or an earlier call could not go below the limit because of what
    was in use then. Responses are not counted and not removed: they were paid for.
    """
    limit = read_cache_limit()
    missed = get_cache_root() / "uses" / "over-the-limit"
    if limit is None or not (written or missed.exists()):
        return
    try:
        with FileLock(get_cache_root() / "uses" / "limit.lock"):
            # The note stands before the second look: who ends a use then finds the note, or the look finds it ended.
            if not _shrink_to_limit(limit):
                missed.touch()
                if not _shrink_to_limit(limit):
                    return
            missed.unlink(missing_ok=True)
    except OSError as error:
        log_message(f"the cache's limit could not be kept: {error}")


def _shrink_to_limit(limit: int) -> bool:
    removable = list_entries(*REMADE)
    size, removed = sum(entry.bytes for entry in removable), []
    for entry in sorted(removable, key=lambda entry: (entry.used, entry.kind, entry.name)):
        if size <= limit:
            break
        if not remove_entry(entry):
            removed.append(entry.bytes)
            size -= entry.bytes
    if removed:
        freed = format_size(sum(removed))
        log_message(f"FARSHIFT_CACHE_LIMIT: removed what the cache had used least recently ({freed})")
    return size <= limit
