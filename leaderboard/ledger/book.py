"""The ledger of a board: signs and chains appended records, and checks records that are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.clock import get_utc_now
from ...core.errors import FarshiftError
from .keys import SigningKey, is_signed_by
from .record import (
    GENESIS,
    KINDS,
    Record,
    find_current_key,
    find_link_problems,
    hash_record,
    list_rotations,
)
from .record import ROTATED as ROTATED
from .store import Store

Event = tuple[str, dict[str, Any]]
"""A record's kind and body."""


class Ledger:
    """The ledger in a store. Any number of processes may append: the database serialises them.

    store: the database of the records. signing: the board's private key, needed to append. key: its first public key,
    hexadecimal: it identifies the board, whatever key signs now.
    """

    def __init__(self, store: Store, signing: SigningKey, key: str) -> None:
        self.store, self.signing, self.key = store, signing, key

    def append(self, events: Sequence[Event]) -> list[Record]:
        """Append events, all or none. They are on the disk when this returns."""
        for kind, _ in events:
            if kind not in KINDS:
                raise ValueError(f"unknown kind of record {kind!r}")
        self.signing.public  # noqa: B018 - report a missing key before locking the ledger
        return self.store.append(lambda head, rotated: self._continued(head, rotated, events), ROTATED)

    def current(self) -> str:
        """The public key that signs now."""
        return find_current_key(self.store.of_kind(ROTATED), self.key)

    def _require(self, key: str) -> None:
        if self.signing.public != key:  # another process may have replaced it
            self.signing = self.signing.again()
        if self.signing.public != key:
            raise FarshiftError(f"{self.signing.path} is not this board's key: its public key is not {key}")

    def _continued(self, head: Record | None, rotated: Sequence[Record], events: Sequence[Event]) -> list[Record]:
        key = find_current_key(rotated, self.key)
        self._require(key)
        # A rotation is signed by the key before it.
        by = find_current_key(rotated[:-1], self.key) if head is not None and head.kind == ROTATED else key
        if head is not None and not (head.fits() and is_signed_by(by, head.hash, head.signature)):
            raise FarshiftError(
                f"the last record of the ledger in {self.store.name} was changed: nothing is appended to it "
                "(run farshift board verify to list what differs)"
            )
        seq, previous = (head.seq + 1, head.hash) if head else (0, GENESIS)
        # Not before the time of the previous record, whatever this machine's clock says.
        time = max(get_utc_now(), head.time) if head else get_utc_now()
        added = []
        for number, (kind, body) in enumerate(events, seq):
            hash = hash_record(number, time, kind, body, previous)
            added.append(Record(number, time, kind, body, previous, hash, self.signing.sign(hash)))
            previous = hash
        return added

    def records(self) -> list[Record]:
        """All records, after a check of their chain and of the signature of the last one, which covers all before it.
        `FarshiftError` names the first problem."""
        records = self.store.records()
        problems = find_link_problems(records)
        key = find_current_key(list_rotations(records[:-1]), self.key)
        if not problems and not is_signed_by(key, records[-1].hash, records[-1].signature):
            problems = [f"record {records[-1].seq} is not signed by the board's key"]
        if problems:
            raise FarshiftError(f"the ledger in {self.store.name}: {problems[0]}")
        return records
