"""The histories that this user has seen: of every board, by its public key, the hash of every record.

`FARSHIFT_HOME/heads/<key>.hashes` holds 32 bytes a record. A board that shows a history which does not extend what was
seen has rewritten it, with its own key, or holds records back; no signature tells that. A board behind an address is
known by its address too: `places/<digest>.key` notes the key that was first seen there.
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


def find_history_conflicts(records: Sequence[Record], key: str) -> list[str]:
    """What says that a history is not the continuation of the one that was last seen under a key."""
    path = _get_history_path(key)
    if not path.is_file():
        return []
    content = path.read_bytes()
    seen = [content[at : at + _HASH].hex() for at in range(0, len(content) - _HASH + 1, _HASH)]
    when = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d")
    for number, (hash, record) in enumerate(zip(seen, records, strict=False)):
        if hash != record.hash:
            return [
                f"the history was rewritten from record {number} on: on {when} this user saw {len(seen)} records, and "
                f"record {number} was another (they are kept in {path})"
            ]
    if len(records) < len(seen):
        return [
            f"the ledger has {len(records)} records, and on {when} this user saw {len(seen)}: the last were cut "
            f"off, or this is an older copy (they are kept in {path})"
        ]
    return []


def find_address_conflicts(address: str, key: str) -> list[str]:
    """What says that another board was seen at an address before. Call it before `remember_history`."""
    path = _get_address_path(address)
    if not path.is_file() or (known := path.read_text("ascii", "replace").strip()) == key:
        return []
    return [f"{address} has the key {key}, and had {known} when this user first looked (kept in {path})"]


def remember_history(records: Sequence[Record], key: str, address: str = "") -> str:
    """Keep a history that was verified and extends what was seen; `address`: the address that it was read from, if any.
    Returns why it could not be kept, or ""."""
    path = _get_history_path(key)
    hashes = b"".join(bytes.fromhex(record.hash) for record in records)
    try:
        with hold_lock(path):
            if not path.is_file() or path.stat().st_size <= len(hashes):
                write_atomically(path, hashes)
            if address and not _get_address_path(address).is_file():
                write_atomically(_get_address_path(address), key.encode())
    except FarshiftError as error:
        return str(error)
    return ""


def _get_history_path(key: str) -> Path:
    return get_user_home() / "heads" / f"{key[:64]}.hashes"


def _get_address_path(address: str) -> Path:
    return get_user_home() / "heads" / "places" / f"{sha256(address.rstrip('/').encode()).hexdigest()[:32]}.key"
