"""The tables of a board's database: the ledger's records, with triggers by which the database refuses to change, delete
or reorder them; and the server's access tokens, queue of submissions, quota usage, and audit log, which are not part of
a score, of an export or of a verification."""

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
    String,
    Table,
    Text,
    text,
)
from sqlalchemy import Column as C
from sqlalchemy import UniqueConstraint as Unique

SCHEMA = "0003"
"""The schema that this version reads and writes, in the table `alembic_version` (boards of earlier versions were
migrated by Alembic)."""

METADATA = MetaData()
VERSION = Table("alembic_version", METADATA, C("version_num", String(32), primary_key=True))


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
AUDIT = Table(
    "audit",
    METADATA,
    C("number", Integer, primary_key=True, autoincrement=True),
    C("time", Double, nullable=False),
    *_required("who", "what", "detail"),
    sqlite_autoincrement=True,
)

_FOLLOW = "a record must follow the last one"
_STAY = "the ledger is append-only: a record is never changed or deleted"
TRIGGERS = {
    "sqlite": (
        f"""
        CREATE TRIGGER IF NOT EXISTS records_follow BEFORE INSERT ON records
        WHEN NEW.seq IS NOT (SELECT coalesce(max(seq) + 1, 0) FROM records)
          OR NEW.previous IS NOT coalesce((SELECT hash FROM records ORDER BY seq DESC LIMIT 1), printf('%.64d', 0))
          OR EXISTS (SELECT 1 FROM records WHERE hash = NEW.hash)
        BEGIN SELECT RAISE(ABORT, '{_FOLLOW}'); END
        """,
        *(
            f"CREATE TRIGGER IF NOT EXISTS {name} BEFORE {change} ON records BEGIN SELECT RAISE(ABORT, '{_STAY}'); END"
            for name, change in (("records_stay", "UPDATE"), ("records_remain", "DELETE"))
        ),
    ),
    "postgresql": (
        f"""
        CREATE OR REPLACE FUNCTION records_follow() RETURNS trigger LANGUAGE plpgsql AS $$
        DECLARE last record;
        BEGIN
            SELECT seq, hash INTO last FROM records ORDER BY seq DESC LIMIT 1;
            IF NEW.seq IS DISTINCT FROM coalesce(last.seq + 1, 0)
               OR NEW.previous IS DISTINCT FROM coalesce(last.hash, repeat('0', 64)) THEN
                RAISE EXCEPTION '{_FOLLOW}';
            END IF;
            RETURN NEW;
        END $$
        """,
        f"""
        CREATE OR REPLACE FUNCTION records_stay() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION '{_STAY}'; END $$
        """,
        *(f"DROP TRIGGER IF EXISTS records_{name} ON records" for name in ("follow", "stay", "remain")),
        "CREATE TRIGGER records_follow BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION records_follow()",
        "CREATE TRIGGER records_stay BEFORE UPDATE OR DELETE ON records FOR EACH ROW EXECUTE FUNCTION records_stay()",
        "CREATE TRIGGER records_remain BEFORE TRUNCATE ON records FOR EACH STATEMENT EXECUTE FUNCTION records_stay()",
    ),
}


def read_database_time(connection: Connection) -> float:
    """Return seconds since 1970. PostgreSQL uses the database's clock, because the clocks of several machines
    differ."""
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time()


def format_iso_time(seconds: float) -> str:
    """Format a time in UTC as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
