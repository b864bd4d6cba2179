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
from ...core.files import locked, user_home, write_atomically
from .record import Record

_HASH = 32


def unlike_seen(records: Sequence[Record], key: str) -> list[str]:
    """What says that a history is not the continuation of the one that was last seen under a key."""
    path = _place(key)
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


def unlike_place(place: str, key: str) -> list[str]:
    """What says that another board was seen at an address before. Call it before `remember`."""
    path = _address(place)
    if not path.is_file() or (known := path.read_text("ascii", "replace").strip()) == key:
        return []
    return [f"{place} has the key {key}, and had {known} when this user first looked (kept in {path})"]


def remember(records: Sequence[Record], key: str, place: str = "") -> str:
    """Keep a history that was verified and extends what was seen; `place`: the address that it was read from, if any.
    Returns why it could not be kept, or ""."""
    path = _place(key)
    hashes = b"".join(bytes.fromhex(record.hash) for record in records)
    try:
        with locked(path):
            if not path.is_file() or path.stat().st_size <= len(hashes):
                write_atomically(path, hashes)
            if place and not _address(place).is_file():
                write_atomically(_address(place), key.encode())
    except FarshiftError as error:
        return str(error)
    return ""


def _place(key: str) -> Path:
    return user_home() / "heads" / f"{key[:64]}.hashes"


def _address(place: str) -> Path:
    return user_home() / "heads" / "places" / f"{sha256(place.rstrip('/').encode()).hexdigest()[:32]}.key"
