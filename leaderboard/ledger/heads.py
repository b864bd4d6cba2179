"""The histories that this user has seen: of every board, by its public key, the hash of every record.

`FARSHIFT_HOME/heads/<key>.hashes` holds 32 bytes a record; `<key>.root` the size and Merkle root of a ledger that was
seen by its signed head alone. A board that shows a history which does not extend what was
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
from .checkpoint import merkle_root
from .record import Record

_HASH = 32


def unlike_seen(records: Sequence[Record], key: str) -> list[str]:
    """What says that a history is not the continuation of the one that was last seen under a key."""
    return _unlike_records(records, key) or _unlike_root(records, key)


def _unlike_root(records: Sequence[Record], key: str) -> list[str]:
    known = _read_root(key)
    if known is None:
        return []
    size, root = known
    if len(records) < size:
        return [
            f"the ledger has {len(records)} records, and a server showed this user {size}: the last were cut off, or "
            f"this is an older copy (kept in {_root(key)})"
        ]
    if merkle_root([bytes.fromhex(record.hash) for record in records[:size]]) != root:
        return [
            f"the history was rewritten: its first {size} records are not those that a server showed this user (kept "
            f"in {_root(key)})"
        ]
    return []


def seen_root(key: str) -> tuple[int, bytes] | None:
    """How many records of the ledger under a key were seen, and their Merkle root; None where none were."""
    known = _read_root(key)
    path = _place(key)
    content = path.read_bytes() if path.is_file() else b""
    size = len(content) // _HASH
    if not size or (known is not None and known[0] >= size):
        return known
    return size, merkle_root([content[at : at + _HASH] for at in range(0, size * _HASH, _HASH)])


def remember_root(key: str, size: int, root: bytes, place: str) -> None:
    """Keep the head of a ledger that extends what was seen, and the address that showed it."""
    with locked(_root(key)):
        known = _read_root(key)
        if known is None or known[0] < size:
            write_atomically(_root(key), f"{size} {root.hex()}\n".encode())
        if not _address(place).is_file():
            write_atomically(_address(place), key.encode())


def _read_root(key: str) -> tuple[int, bytes] | None:
    path = _root(key)
    if not path.is_file():
        return None
    size, _, root = path.read_text("ascii", "replace").strip().partition(" ")
    try:
        return int(size), bytes.fromhex(root)
    except ValueError as error:
        raise FarshiftError(f"{path} was changed: it is not the size and root of a ledger") from error


def _unlike_records(records: Sequence[Record], key: str) -> list[str]:
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


def _root(key: str) -> Path:
    return user_home() / "heads" / f"{key[:64]}.root"


def _address(place: str) -> Path:
    return user_home() / "heads" / "places" / f"{sha256(place.rstrip('/').encode()).hexdigest()[:32]}.key"
