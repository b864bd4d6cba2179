"""The database of a board, in SQLite or PostgreSQL: the ledger's records; and the server's access tokens, queue of
submissions and quota usage, which are not part of a score, of an export or of a verification.

Writes are serialised by the database (SQLite: `BEGIN IMMEDIATE`; PostgreSQL: locks of tables), and acknowledged when
they are on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from threading import Lock
from time import time
from typing import Any

from ...core.errors import FarshiftError, MissingExtra, get_first_line

try:
    from sqlalchemy import (
        BigInteger,
        Connection,
        Double,
        Engine,
        Index,
        Integer,
        MetaData,
        Table,
        Text,
        create_engine,
        event,
        inspect,
        text,
    )
    from sqlalchemy import Column as C
    from sqlalchemy import UniqueConstraint as Unique
    from sqlalchemy.engine import URL, make_url
    from sqlalchemy.exc import ArgumentError, SQLAlchemyError
except ImportError as error:
    raise MissingExtra("a board's ledger", "board") from error

METADATA = MetaData()


def _make_required_columns(*names: str) -> list[C[str]]:
    return [C(name, Text, nullable=False) for name in names]


RECORDS = Table(
    "records",
    METADATA,
    C("seq", Integer, primary_key=True, autoincrement=False),
    *_make_required_columns("time", "kind", "body"),
    # No two records may follow the same one: a chain never forks.
    C("previous", Text, nullable=False, unique=True),
    C("hash", Text, nullable=False, unique=True),
    *_make_required_columns("signature"),
)
TOKENS = Table(
    "tokens",
    METADATA,
    C("id", Text, primary_key=True),
    C("hash", Text, nullable=False, unique=True),
    *_make_required_columns("team"),
    C("created", Double, nullable=False),
    *(C(name, Double) for name in ("expires", "revoked")),
)
JOBS = Table(
    "jobs",
    METADATA,
    C("number", Integer, primary_key=True, autoincrement=True),
    C("id", Text, nullable=False, unique=True),
    *_make_required_columns("owner", "team", "token", "digest"),
    C("size", BigInteger, nullable=False),
    *_make_required_columns("state"),
    *(C(name, Double, nullable=False) for name in ("created", "updated", "due")),
    C("lease", Double),
    *_make_required_columns("worker"),
    C("attempts", Integer, nullable=False),
    *_make_required_columns("entries", "problems", "reason"),
    # The same bytes of one team are one job, so a request whose response was lost can be repeated.
    Unique("owner", "digest"),
    Index("jobs_state", "state", "number"),
    sqlite_autoincrement=True,
)
CHARGES = Table(
    "charges",
    METADATA,
    C("number", Integer, primary_key=True, autoincrement=True),
    *_make_required_columns("owner"),
    C("time", Double, nullable=False),
    C("size", BigInteger, nullable=False),
    *_make_required_columns("job"),
    Index("charges_owner", "owner", "time"),
)


WAIT = 60
"""Seconds that an append waits for another process."""

HOLD = 0x46617273686966
"""The number of the advisory lock of a board's writer in PostgreSQL ("Farshif" in ASCII)."""


class Store:
    """A database with one ledger. url: `sqlite:///FILE` or `postgresql+psycopg://USER@HOST/DATABASE`."""

    def __init__(self, url: str) -> None:
        self.url = _parse_url(url)
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
        """A connection in a transaction that excludes other writers (PostgreSQL: if it locks a table). Its changes are
        on the disk when the context ends, whatever the server's default is."""
        self.require_writable()
        # SQLite lets waiting writers poll at growing intervals: one of twenty threads could wait for seconds while
        # others overtake it.
        if not self._writes.acquire(timeout=WAIT):
            raise FarshiftError(f"the ledger in {self.name}: locked by other threads for {WAIT} s: try again")
        try:
            with self._plainly(), self._engine.execution_options(writes=True).begin() as connection:
                if self.dialect == "postgresql":
                    connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT}s'")
                    connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
                yield connection
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
        try:
            yield
        except ModuleNotFoundError as error:
            raise MissingExtra(f"a ledger in {self.dialect}", "board") from error
        except SQLAlchemyError as error:
            message = get_first_line(getattr(error, "orig", None) or error)
            raise FarshiftError(f"the ledger in {self.name}: {message}") from error

    def create_tables(self) -> None:
        """Create the missing tables, in one transaction."""
        with self.writing() as connection:
            METADATA.create_all(connection)

    def require_tables(self) -> None:
        """Raise `FarshiftError` unless the database has a ledger."""
        if self.dialect != "sqlite" or Path(str(self.url.database)).is_file():
            with self.reading() as connection:
                if inspect(connection).has_table(RECORDS.name):
                    return
        raise FarshiftError(f"the ledger in {self.name} is missing: restore it")

    def require_writable(self) -> None:
        """Raise `FarshiftError` if this user may only read the database's file."""
        file = Path(str(self.url.database))
        paths = (file.parent, file) if self.dialect == "sqlite" else ()
        if not all(os.access(path, os.W_OK) for path in paths if path.exists()):
            raise FarshiftError(f"{file} may only be read by this user: repeat the command as the board's owner")

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


def _parse_url(url: str) -> URL:
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


def read_database_time(connection: Connection) -> float:
    """Return seconds since 1970. PostgreSQL uses the database's clock, because the clocks of several machines
    differ."""
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time()


def format_iso_time(seconds: float) -> str:
    """Format a time in UTC as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
