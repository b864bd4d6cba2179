"""One record of a ledger: an event, the hash of the record before it, and the board's signature.

A record's `hash` is sha256 of the canonical JSON of `seq`, `time`, `kind`, `body` and `previous`; `previous` is the
hash of the record before it, so a change anywhere changes every later hash. `signature` is ed25519 (RFC 8032) by the
board's key at that time (`rotation.py`) over the 32 bytes of the hash.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ...core.canonical import compute_identity, to_canonical_json

GENESIS = "0" * 64
"""The value of `previous` in the first record."""

KINDS = (
    "opened",
    "submitted",
    "scored",
    "rescored",
    "withdrawn",
    "removed",
    "window_opened",
    "window_closed",
    "seed_committed",
    "seed_revealed",
    "referenced",
    "key_rotated",
)
"""The kinds of events on a board."""

HISTORY = ("challenged", "share_committed", "share_revealed", "randomness")
"""Kinds of events on boards of earlier versions. Such records stay in the chain; new ones cannot be added."""

_HEX = {"previous": 64, "hash": 64, "signature": 128}


@dataclass(frozen=True)
class Record:
    """One record. seq: its number, from 0; time: UTC, ISO 8601; hash, previous and signature: lower-case
    hexadecimal."""

    seq: int
    time: str
    kind: str
    body: dict[str, Any]
    previous: str
    hash: str
    signature: str

    def line(self) -> bytes:
        """The record's canonical JSON: a line of an export, without the newline."""
        return to_canonical_json(self.__dict__)

    def fits(self) -> bool:
        """Whether the hash matches the other fields."""
        return self.hash == hash_record(self.seq, self.time, self.kind, self.body, self.previous)


def hash_record(seq: int, time: str, kind: str, body: dict[str, Any], previous: str) -> str:
    """The hash of a record. `ValueError` for a body that is not valid JSON (NaN)."""
    return compute_identity({"seq": seq, "time": time, "kind": kind, "body": body, "previous": previous})


def read_line(line: bytes) -> Record:
    """Parse a line of an export. `ValueError` for anything but a record exactly as `Record.line` writes it."""
    try:
        read = json.loads(line)
        record = Record(**read)
        canonical = record.line()
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError("is not a record") from error
    if canonical != line or type(record.seq) is not int or not isinstance(record.body, dict):
        raise ValueError("is not in canonical form")
    for name in ("time", "kind", *_HEX):
        value = getattr(record, name)
        if not isinstance(value, str) or (name in _HEX and not re.fullmatch(f"[0-9a-f]{{{_HEX[name]}}}", value)):
            raise ValueError(f"has a missing or invalid {name}")
    return record
