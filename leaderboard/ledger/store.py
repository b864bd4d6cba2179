"""The table of records, in SQLite or PostgreSQL, through SQLAlchemy.

Appends are serialised by the database (SQLite: `BEGIN IMMEDIATE`; PostgreSQL: a lock on the table), and acknowledged
when they are on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...core.canonical import to_canonical_json
from ...core.documents import parse_json
from ...core.errors import FarshiftError, MissingExtra, get_first_line
from .record import Record

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Row
    from sqlalchemy.engine import URL


WAIT = 60
"""Seconds that an append waits for another process."""

HOLD = 0x46617273686966
"""The number of the advisory lock of a board's writer in PostgreSQL ("Farshif" in ASCII)."""

_COLUMNS = ("seq", "time", "kind", "body", "previous", "hash", "signature")


class Store:
    """A database with one ledger. url: `sqlite:///FILE` or `postgresql+psycopg://USER@HOST/DATABASE`."""

    def __init__(self, url: str) -> None:
        self.url = _parse_url(url)
        self._file = Path(str(self.url.database))  # SQLite's
        self._writes = Lock()

    @classmethod
    def in_file(cls, path: Path) -> Store:
        """The SQLite database in a file."""
        return cls(f"sqlite:///{path}")

    @property
    def dialect(self) -> str:
        return self.url.get_backend_name()

    @property
    def name(self) -> str:
        """The location of the database for messages, without a password."""
        if self.dialect == "sqlite":
            return str(self.url.database)
        port = f":{self.url.port}" if self.url.port else ""
        return f"{self.dialect}://{self.url.host or ''}{port}/{self.url.database or ''}"

    @cached_property
    def _engine(self) -> Engine:
        from sqlalchemy import create_engine

        with self._plainly():
            if self.dialect == "sqlite":
                return _prepare_sqlite(create_engine(self.url, connect_args={"timeout": WAIT}))
            arguments = {"connect_timeout": 10, "application_name": "farshift"}
            return create_engine(self.url, pool_pre_ping=True, connect_args=arguments)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection in a transaction that sees one state."""
        with self._plainly(), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection in a transaction that excludes other writers (PostgreSQL: see `append`)."""
        with (
            self._turn(),
            self._plainly(),
            self._engine.execution_options(writes=True).begin() as connection,
        ):
            yield connection

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Serialise the writers of this process for SQLite. SQLite lets waiting writers poll at growing intervals, so
        that one of twenty could wait for seconds while others overtake it."""
        if self.dialect != "sqlite":
            yield
            return
        if not self._writes.acquire(timeout=WAIT):
            raise FarshiftError(f"the ledger in {self.name}: locked by other threads for {WAIT} s: try again")
        try:
            yield
        finally:
            self._writes.release()

    @contextmanager
    def lock_across_machines(self) -> Iterator[None]:
        """Lock the ledger across machines within the context; the lock of a process that dies is released. Only
        PostgreSQL is used from more than one machine: for SQLite this does nothing."""
        if self.dialect == "sqlite":
            yield
            return
        with self._plainly():
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        try:
            with self._plainly():
                connection.exec_driver_sql(f"SET lock_timeout = '{WAIT}s'")
                connection.exec_driver_sql(f"SELECT pg_advisory_lock({HOLD})")
            yield
        finally:
            # The lock belongs to the session, which is closed and not returned to the pool.
            with self._plainly():
                connection.invalidate()
                connection.close()

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        """Turn database errors into one line without the SQL statement or a password."""
        from sqlalchemy.exc import SQLAlchemyError

        try:
            yield
        except ModuleNotFoundError as error:
            raise MissingExtra(f"a ledger in {self.dialect}", "board") from error
        except SQLAlchemyError as error:
            message = get_first_line(getattr(error, "orig", None) or error)
            raise FarshiftError(f"the ledger in {self.name}: {message}") from error

    def create_tables(self) -> None:
        """Create the missing tables, in one transaction."""
        from sqlalchemy import delete, insert

        from .schema import METADATA, SCHEMA, VERSION

        with self.writing() as connection:
            METADATA.create_all(connection)
            connection.execute(delete(VERSION))
            connection.execute(insert(VERSION).values(version=SCHEMA))

    def require_schema(self) -> None:
        """Raise `FarshiftError` unless the database has a ledger of exactly this version's schema."""
        from sqlalchemy import inspect

        from .schema import SCHEMA, VERSION

        schema = None
        if self.dialect != "sqlite" or self._file.is_file():
            with self.reading() as connection:
                if inspect(connection).has_table(VERSION.name):
                    schema = connection.exec_driver_sql(f"SELECT version FROM {VERSION.name}").scalar()
        if schema is None:
            raise FarshiftError(f"the ledger in {self.name} is missing: restore it")
        if schema != SCHEMA:
            raise FarshiftError(
                f"the ledger in {self.name} has schema {schema}, this version of Farshift has {SCHEMA}: "
                "use the version that made it"
            )

    @contextmanager
    def committing(self) -> Iterator[Connection]:
        """As `writing`; the changes are on the disk when the context ends, whatever the server's default is."""
        with self.writing() as connection:
            if self.dialect == "postgresql":
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT}s'")
                connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
            yield connection

    def append(self, continued: Callable[[Record | None, list[Record]], list[Record]], kind: str) -> list[Record]:
        """Insert the records that `continued` returns for the last record and all records of `kind`, in one
        transaction. Returns them once they are on the disk."""
        from sqlalchemy import insert

        from .schema import RECORDS

        with self.committing() as connection:
            if self.dialect == "postgresql":
                connection.exec_driver_sql("LOCK TABLE records IN EXCLUSIVE MODE")
            added = continued(self._head(connection), self._of_kind(connection, kind))
            if added:
                rows = [record.__dict__ | {"body": to_canonical_json(record.body).decode()} for record in added]
                connection.execute(insert(RECORDS), rows)
        return added

    def _head(self, connection: Connection) -> Record | None:
        from sqlalchemy import select

        from .schema import RECORDS as records

        row = connection.execute(select(records).order_by(records.c.seq.desc()).limit(1)).first()
        return None if row is None else self._record(row)

    def head_hash(self) -> str | None:
        """The hash of the last record, unchecked; None if there is none."""
        # A server asks for it with each request, and SQLAlchemy takes longer to build this query than to send it.
        with self.reading() as connection:
            hash: str | None = connection.exec_driver_sql("SELECT hash FROM records ORDER BY seq DESC LIMIT 1").scalar()
        return hash

    def of_kind(self, kind: str) -> list[Record]:
        """The records of a kind by `seq`, unchecked."""
        with self.reading() as connection:
            return self._of_kind(connection, kind)

    def _of_kind(self, connection: Connection, kind: str) -> list[Record]:
        from sqlalchemy import select

        from .schema import RECORDS as records

        query = select(records).where(records.c.kind == kind).order_by(records.c.seq)
        return [self._record(row) for row in connection.execute(query)]

    def records(self) -> list[Record]:
        """All records, by `seq`, unchecked."""
        from sqlalchemy import select

        from .schema import RECORDS

        with self.reading() as connection:
            return [self._record(row) for row in connection.execute(select(RECORDS).order_by(RECORDS.c.seq)).all()]

    def _record(self, row: Row[Any]) -> Record:
        values = dict(zip(_COLUMNS, row, strict=True))
        try:
            body = parse_json(values["body"])
        except (TypeError, ValueError) as error:
            raise FarshiftError(f"the ledger in {self.name}: the body of record {values['seq']} is not JSON") from error
        return Record(**values | {"body": body})

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _parse_url(url: str) -> URL:
    try:
        from sqlalchemy.engine import make_url
        from sqlalchemy.exc import ArgumentError
    except ImportError as error:
        raise MissingExtra("a board's ledger", "board") from error
    try:
        database_url = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise FarshiftError("the store is not a database URL: try postgresql+psycopg://USER@HOST/DATABASE") from error
    if database_url.drivername == "postgresql":
        database_url = database_url.set(drivername="postgresql+psycopg")
    if database_url.drivername not in ("sqlite", "postgresql+psycopg"):
        raise FarshiftError(
            f"a ledger cannot be stored in {database_url.drivername}: use postgresql+psycopg://USER@HOST/DATABASE"
        )
    return database_url


def _prepare_sqlite(engine: Engine) -> Engine:
    """Make transactions begin explicitly and commits durable."""
    from sqlalchemy import event

    def connected(connection: Any, _: Any) -> None:
        connection.isolation_level = None  # otherwise Python's driver begins transactions implicitly
        # A rollback journal, flushed together with its folder: the whole ledger is in one file, also on a read-only
        # disk, and commits survive a power failure.
        for pragma in ("synchronous = EXTRA", "trusted_schema = OFF"):
            connection.execute(f"PRAGMA {pragma}")

    def begun(connection: Connection) -> None:
        writes = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine
