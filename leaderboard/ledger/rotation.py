"""Which key signs which records: a board's first key, by which it is known for good, until a record that is signed by
it names the next.

A record `key_rotated` has `{"key": ..}`, the public key that signs every record after it. It is signed by the key
before, so whoever trusts the first key trusts the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .keys import is_signed_by
from .record import Record

KIND = "key_rotated"
_KEY = re.compile("[0-9a-f]{64}")


def find_next_key(record: Record, key: str) -> str:
    """The key that signs the records after one that `key` signs."""
    named = record.body.get("key") if record.kind == KIND else None
    return named if isinstance(named, str) and _KEY.fullmatch(named) else key


def find_current_key(records: Iterable[Record], key: str) -> str:
    """The key that signs what follows some records, `key` being the board's first. A rotation that the key before it
    did not sign is none."""
    for record in records:
        if record.kind == KIND and record.fits() and is_signed_by(key, record.hash, record.signature):
            key = find_next_key(record, key)
    return key


def list_rotations(records: Sequence[Record]) -> list[Record]:
    """The records that name a new key."""
    return [record for record in records if record.kind == KIND]


def find_unsigned(records: Iterable[Record], key: str) -> list[int]:
    """The numbers of the records that their key did not sign, `key` being that of the first of them."""
    wrong = []
    for record in records:
        if is_signed_by(key, record.hash, record.signature):
            key = find_next_key(record, key)
        else:
            wrong.append(record.seq)
    return wrong
