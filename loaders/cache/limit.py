"""The cache's size limit `FARSHIFT_CACHE_LIMIT`, enforced after each write by removing least recently used entries."""

from __future__ import annotations

import re

from filelock import FileLock

from ...core.errors import FarshiftError
from ...core.files import get_cache_root
from ...core.progress import log_message
from ...core.settings import read_settings
from .entries import REMADE, list_entries, remove_entry

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
