"""The tables of a board's database: the ledger's records; and the server's access tokens, queue of submissions and
quota usage, which are not part of a score, of an export or of a verification."""

from __future__ import annotations

from datetime import UTC, datetime
from time import time

from sqlalchemy import (
    BigInteger,
    Connection,
    Double,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    text,
)
from sqlalchemy import Column as C
from sqlalchemy import UniqueConstraint as Unique

SCHEMA = "1"
"""The schema that this version reads and writes."""

METADATA = MetaData()
VERSION = Table("schema_version", METADATA, C("version", Text, primary_key=True))


def _required(*names: str) -> list[C[str]]:
    return [C(name, Text, nullable=False) for name in names]


RECORDS = Table(
    "records",
    METADATA,
    C("seq", Integer, primary_key=True, autoincrement=False),
    *_required("time", "kind", "body"),
    # No two records may follow the same one: a chain never forks.
    C("previous", Text, nullable=False, unique=True),
    C("hash", Text, nullable=False, unique=True),
    *_required("signature"),
)
TOKENS = Table(
    "tokens",
    METADATA,
    C("id", Text, primary_key=True),
    C("hash", Text, nullable=False, unique=True),
    *_required("team", "team_key"),
    C("created", Double, nullable=False),
    *(C(name, Double) for name in ("expires", "revoked")),
)
JOBS = Table(
    "jobs",
    METADATA,
    C("number", Integer, primary_key=True, autoincrement=True),
    C("id", Text, nullable=False, unique=True),
    *_required("owner", "team", "team_key", "token", "digest"),
    C("size", BigInteger, nullable=False),
    *_required("state"),
    *(C(name, Double, nullable=False) for name in ("created", "updated", "due")),
    C("lease", Double),
    *_required("worker"),
    C("attempts", Integer, nullable=False),
    *_required("entries", "problems", "reason"),
    # The same bytes of one team are one job, so a request whose response was lost can be repeated.
    Unique("owner", "digest"),
    Index("jobs_state", "state", "number"),
    sqlite_autoincrement=True,
)
CHARGES = Table(
    "charges",
    METADATA,
    C("number", Integer, primary_key=True, autoincrement=True),
    *_required("owner"),
    C("time", Double, nullable=False),
    C("size", BigInteger, nullable=False),
    *_required("job"),
    Index("charges_owner", "owner", "time"),
)


def read_database_time(connection: Connection) -> float:
    """Return seconds since 1970. PostgreSQL uses the database's clock, because the clocks of several machines
    differ."""
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time()


def format_iso_time(seconds: float) -> str:
    """Format a time in UTC as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
