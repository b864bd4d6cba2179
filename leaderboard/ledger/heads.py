"""The histories that this user has seen: the hash of every record of every board, by the board's public key.

`FARSHIFT_HOME/heads/<key>.hashes` has 32 bytes for each record. If a board shows a history that does not extend the one
that was seen, it has rewritten its history with its own key, or withholds records; no signature reveals that. A board
behind a URL is also recognised by its URL: `places/<digest>.key` has the key that was first seen there.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from ...core.errors import FarshiftError
from ...core.files import get_user_home, hold_lock, write_atomically
from .record import Record

_HASH = 32


def find_history_conflicts(records: Sequence[Record], key: str, address: str = "") -> list[str]:
    """List how a history is not a continuation of the one last seen for a key, or at a URL. Call it before
    `remember_history`."""
    path, address_path = _get_history_path(key), _get_address_path(address)
    problems = []
    content = path.read_bytes() if path.is_file() else b""
    seen = [content[at : at + _HASH].hex() for at in range(0, len(content) - _HASH + 1, _HASH)]
    pairs = enumerate(zip(seen, records, strict=False))
    changed = next((number for number, (hash, record) in pairs if hash != record.hash), None)
    if changed is not None or len(records) < len(seen):
        when = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d")
        what = (
            f"the ledger has {len(records)} records, but on {when} this user saw {len(seen)}: the last records were "
            "removed, or this is an older copy"
            if changed is None
            else f"the history was rewritten from record {changed} on: on {when} this user saw {len(seen)} records "
            f"with another record {changed}"
        )
        problems.append(f"{what} (their hashes are in {path})")
    if address and address_path.is_file() and (known := address_path.read_text("ascii", "replace").strip()) != key:
        problems.append(
            f"{address} has the key {key}, but had the key {known} when this user first read it (stored in "
            f"{address_path})"
        )
    return problems


def remember_history(records: Sequence[Record], key: str, address: str = "") -> str:
    """Store a history that was verified and extends the one seen before; `address`: the URL that it was read from, if
    any. Returns the reason if it could not be stored, else ""."""
    path, address_path = _get_history_path(key), _get_address_path(address)
    hashes = b"".join(bytes.fromhex(record.hash) for record in records)
    try:
        with hold_lock(path):
            if not path.is_file() or path.stat().st_size <= len(hashes):
                write_atomically(path, hashes)
            if address and not address_path.is_file():
                write_atomically(address_path, key.encode())
    except FarshiftError as error:
        return str(error)
    return ""


def _get_history_path(key: str) -> Path:
    return get_user_home() / "heads" / f"{key[:64]}.hashes"


def _get_address_path(address: str) -> Path:
    return get_user_home() / "heads" / "places" / f"{sha256(address.rstrip('/').encode()).hexdigest()[:32]}.key"
