"""The ledger of a board: records go in signed and in one chain, and come out checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.clock import get_utc_now
from ...core.errors import FarshiftError
from .chain import find_chain_problems, find_continuation_problems, find_link_problems
from .keys import SigningKey, is_signed_by
from .record import GENESIS, KINDS, Record, hash_record
from .rotation import KIND as ROTATED
from .rotation import find_current_key, list_rotations
from .store import Store

Event = tuple[str, dict[str, Any]]
"""A record's kind and body."""


class Ledger:
    """The ledger in a store. Any number of processes may append: the database puts them in order.

    store: where the records lie. signing: the board's private key, needed to append. key: its first public key,
    hexadecimal: the board is known by it, whatever key signs now.
    """

    def __init__(self, store: Store, signing: SigningKey, key: str) -> None:
        self.store, self.signing, self.key = store, signing, key

    def append(self, events: Sequence[Event]) -> list[Record]:
        """Append events, all or none. Once this returns they are on the disk, whatever happens to the process."""
        for kind, _ in events:
            if kind not in KINDS:
                raise ValueError(f"a ledger has no records of the kind {kind!r}")
        self.signing.public  # noqa: B018 - a key that is missing is said before the ledger is held
        return self.store.append(lambda head, rotated: self._continued(head, rotated, events), ROTATED)

    def current(self) -> str:
        """The public key that signs now."""
        return find_current_key(self.store.of_kind(ROTATED), self.key)

    def _require(self, key: str) -> None:
        if self.signing.public != key:  # another process may have put a new one in its place
            self.signing = self.signing.again()
        if self.signing.public != key:
            raise FarshiftError(f"{self.signing.path} is not this board's key, whose public half is {key}")

    def _continued(self, head: Record | None, rotated: Sequence[Record], events: Sequence[Event]) -> list[Record]:
        key = find_current_key(rotated, self.key)
        self._require(key)
        # A rotation is signed by the key before it.
        by = find_current_key(rotated[:-1], self.key) if head is not None and head.kind == ROTATED else key
        if head is not None and not (head.fits() and is_signed_by(by, head.hash, head.signature)):
            raise FarshiftError(
                f"the last record of the ledger in {self.store.name} was changed: nothing is appended to it "
                "(farshift board verify lists what differs)"
            )
        seq, previous = (head.seq + 1, head.hash) if head else (0, GENESIS)
        time = _clamp_time(head, get_utc_now())
        added = []
        for number, (kind, body) in enumerate(events, seq):
            hash = hash_record(number, time, kind, body, previous)
            added.append(Record(number, time, kind, body, previous, hash, self.signing.sign(hash)))
            previous = hash
        return added

    def records(self) -> list[Record]:
        """All records, checked against their chain and the signature of the last one, which stands for all before it;
        `FarshiftError` names the first thing that is wrong."""
        records = self.store.records()
        problems = find_link_problems(records)
        key = find_current_key(list_rotations(records[:-1]), self.key)
        if not problems and not is_signed_by(key, records[-1].hash, records[-1].signature):
            problems = [f"record {records[-1].seq} is not signed by the board's key"]
        if problems:
            raise FarshiftError(f"the ledger in {self.store.name}: {problems[0]}")
        return records

    def records_since(self, last: Record) -> list[Record]:
        """The records after one that was read, checked as by `records`; those before it are not read again.
        `FarshiftError` where the ledger does not go on from it."""
        since = self.store.records(last.seq)
        records = since[1:]
        problems = find_continuation_problems(last, records)
        if not since or since[0].hash != last.hash or not since[0].fits():
            problems = [f"record {last.seq} is not the one that it was before"]
        if not problems and records and not self._signed(records[-1]):
            problems = [f"record {records[-1].seq} is not signed by the board's key"]
        if problems:
            raise FarshiftError(f"the ledger in {self.store.name}: {problems[0]}")
        return records

    def _signed(self, record: Record) -> bool:
        rotated = [rotation for rotation in self.store.of_kind(ROTATED) if rotation.seq < record.seq]
        return is_signed_by(find_current_key(rotated, self.key), record.hash, record.signature)

    def read(self, head: str | None = None) -> tuple[list[Record], list[str]]:
        """All records as they are, and everything that is wrong with them, every signature checked."""
        records = self.store.records()
        return records, find_chain_problems(records, self.key, head)


def _clamp_time(head: Record | None, time: str) -> str:
    """A record's time is never before that of the one it follows, whatever the clock of this machine says."""
    return max(time, head.time) if head else time
