"""The ledger of a board: signs and chains appended records, and checks records that are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.canonical import to_canonical_json
from ...core.clock import get_utc_now
from ...core.documents import parse_json
from ...core.errors import FarshiftError
from .keys import SigningKey, is_signed_by
from .record import GENESIS, KINDS, Record, find_link_problems, hash_record
from .store import RECORDS, Store

if TYPE_CHECKING:
    from sqlalchemy import Row

Event = tuple[str, dict[str, Any]]
"""A record's kind and body."""


class Ledger:
    """The ledger in a store. Any number of processes may append: the database serialises them.

    store: the database of the records. signing: the board's private key, needed to append. key: its public key,
    hexadecimal, which identifies the board.
    """

    def __init__(self, store: Store, signing: SigningKey, key: str) -> None:
        self.store, self.signing, self.key = store, signing, key

    def append(self, events: Sequence[Event]) -> list[Record]:
        """Append events, all or none. They are on the disk when this returns."""
        for kind, _ in events:
            if kind not in KINDS:
                raise ValueError(f"unknown kind of record {kind!r}")
        if self.signing.public != self.key:
            raise FarshiftError(f"{self.signing.path} is not this board's key: its public key is not {self.key}")
        with self.store.writing() as connection:
            if self.store.dialect == "postgresql":
                connection.exec_driver_sql("LOCK TABLE records IN EXCLUSIVE MODE")
            row = connection.execute(RECORDS.select().order_by(RECORDS.c.seq.desc()).limit(1)).first()
            added = self._chain(None if row is None else self._read_row(row), events)
            rows = [record.__dict__ | {"body": to_canonical_json(record.body).decode()} for record in added]
            if rows:
                connection.execute(RECORDS.insert(), rows)
        return added

    def _chain(self, head: Record | None, events: Sequence[Event]) -> list[Record]:
        """The records of some events after the last record."""
        if head is not None and not (head.fits() and is_signed_by(self.key, head.hash, head.signature)):
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
        records = self.read_unchecked()
        problems = find_link_problems(records)
        if not problems and not is_signed_by(self.key, records[-1].hash, records[-1].signature):
            problems = [f"record {records[-1].seq} is not signed by the board's key"]
        if problems:
            raise FarshiftError(f"the ledger in {self.store.name}: {problems[0]}")
        return records

    def read_unchecked(self) -> list[Record]:
        """All records, by `seq`, unchecked."""
        with self.store.reading() as connection:
            return [self._read_row(row) for row in connection.execute(RECORDS.select().order_by(RECORDS.c.seq)).all()]

    def head_hash(self) -> str | None:
        """The hash of the last record, unchecked; None if there is none."""
        # A server asks for it with each request, and SQLAlchemy takes longer to build this query than to send it.
        with self.store.reading() as connection:
            hash: str | None = connection.exec_driver_sql("SELECT hash FROM records ORDER BY seq DESC LIMIT 1").scalar()
        return hash

    def _read_row(self, row: Row[Any]) -> Record:
        values = dict(row._mapping)
        try:
            return Record(**values | {"body": parse_json(values["body"])})
        except (TypeError, ValueError) as error:
            raise FarshiftError(
                f"the ledger in {self.store.name}: the body of record {values['seq']} is not JSON"
            ) from error
