"""Key rotation: a board signs with its first key, which identifies it permanently, until a record signed by it names
the next one.

A record `key_rotated` has `{"key": ..}`, the public key that signs every later record. It is signed by the previous
key, so trust in the first key extends to the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .keys import is_signed_by
from .record import Record

KIND = "key_rotated"
_KEY = re.compile("[0-9a-f]{64}")


def find_next_key(record: Record, key: str) -> str:
    """The key that signs the records after `record`, which `key` signs."""
    named = record.body.get("key") if record.kind == KIND else None
    return named if isinstance(named, str) and _KEY.fullmatch(named) else key


def find_current_key(records: Iterable[Record], key: str) -> str:
    """The key that signs the record after `records`, `key` being the board's first. A rotation that the previous key
    did not sign is ignored."""
    for record in records:
        if record.kind == KIND and record.fits() and is_signed_by(key, record.hash, record.signature):
            key = find_next_key(record, key)
    return key


def list_rotations(records: Sequence[Record]) -> list[Record]:
    """The records that name a new key."""
    return [record for record in records if record.kind == KIND]


def find_unsigned(records: Iterable[Record], key: str) -> list[int]:
    """The numbers of the records without a valid signature, `key` being the key of the first of them."""
    wrong = []
    for record in records:
        if is_signed_by(key, record.hash, record.signature):
            key = find_next_key(record, key)
        else:
            wrong.append(record.seq)
    return wrong
