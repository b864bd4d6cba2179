"""The records of a ledger: one record, and the checks of their chain.

A record's `hash` is sha256 of the canonical JSON of `seq`, `time`, `kind`, `body` and `previous`; `previous` is the
hash of the record before it, so a change anywhere changes every later hash. `signature` is ed25519 (RFC 8032) by the
board's key over the 32 bytes of the hash.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...core.canonical import compute_identity, to_canonical_json
from ...core.documents import parse_json
from .keys import is_signed_by

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
    "seed_revealed",
    "referenced",
)
"""The kinds of events on a board."""

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
        read = parse_json(line)
        record = Record(**read)
        canonical = record.line()
    except (ValueError, TypeError) as error:
        raise ValueError("is not a record") from error
    if canonical != line or type(record.seq) is not int or not isinstance(record.body, dict):
        raise ValueError("is not in canonical form")
    for name in ("time", "kind", *_HEX):
        value = getattr(record, name)
        if not isinstance(value, str) or (name in _HEX and not re.fullmatch(f"[0-9a-f]{{{_HEX[name]}}}", value)):
            raise ValueError(f"has a missing or invalid {name}")
    return record


def find_chain_problems(records: Sequence[Record], key: str, head: str | None = None) -> list[str]:
    """List all problems of a ledger's records, in order; empty if there are none.

    key: the board's public key, hexadecimal. head: a record's hash known from an earlier check. Without it a
    removal of the last records cannot be detected, because the rest is still a valid chain.
    """
    problems = find_link_problems(records)
    unsigned = [
        f"record {record.seq} is not signed by the board's key"
        for record in records
        if not is_signed_by(key, record.hash, record.signature)
    ]
    problems += [f"no record is signed by the board's key {key}"] if len(unsigned) == len(records) > 1 else unsigned
    if head is not None and all(record.hash != head for record in records):
        problems.append(f"no record has the given hash {head}: records were removed or rewritten")
    return problems


def find_link_problems(records: Sequence[Record]) -> list[str]:
    """List the problems of the chain itself, without signatures."""
    problems = []
    if not records or records[0].kind != "opened" or records[0].seq:
        problems.append("the ledger does not begin with the board's opening: records were removed")
    due, previous = 0, GENESIS
    for number, record in enumerate(records):
        if record.seq > due:
            last = record.seq - 1
            missing = f"record {due} is" if due == last else f"records {due} to {last} are"
            problems.append(f"{missing} missing before record {record.seq}")
        elif record.seq < due:
            problems.append(f"record {record.seq} comes after record {due - 1}: records were reordered or repeated")
        elif record.previous != previous:
            problems.append(f"record {record.seq} does not have the hash of the record before it")
        if not record.fits():
            problems.append(f"record {record.seq} ({record.kind}) was changed: its hash does not match")
        if record.kind not in KINDS:
            problems.append(f"record {record.seq} has the unknown kind {record.kind!r}")
        elif record.kind == "opened" and number:
            problems.append(f"record {record.seq} opens the board again")
        due, previous = record.seq + 1, record.hash
    return problems
