"""SQLAlchemy tables of migration 0003. The migration's table of multipart uploads is no longer used.

The migration repeats the columns, with constraints that queries do not need (nullable, unique). It has already run on
existing boards, so it must not change when these tables do. A test checks that the two agree.
"""

from __future__ import annotations

from time import time

from sqlalchemy import BigInteger, Connection, Double, Integer, MetaData, Table, Text, text
from sqlalchemy import Column as C

_META = MetaData()

TOKENS = Table(
    "tokens",
    _META,
    C("id", Text, primary_key=True),
    *(C(name, Text) for name in ("hash", "team", "team_key", "scopes")),
    *(C(name, Double) for name in ("created", "expires", "revoked")),
)
JOBS = Table(
    "jobs",
    _META,
    C("number", Integer, primary_key=True),
    *(C(name, Text) for name in ("id", "owner", "team", "team_key", "token", "digest")),
    C("size", BigInteger),
    C("state", Text),
    *(C(name, Double) for name in ("created", "updated", "due", "lease")),
    C("worker", Text),
    C("attempts", Integer),
    *(C(name, Text) for name in ("entries", "problems", "reason")),
)
CHARGES = Table(
    "charges",
    _META,
    C("number", Integer, primary_key=True),
    C("owner", Text),
    C("time", Double),
    C("size", BigInteger),
    C("job", Text),
)
AUDIT = Table(
    "audit",
    _META,
    C("number", Integer, primary_key=True),
    C("time", Double),
    *(C(name, Text) for name in ("who", "what", "detail")),
)


def read_database_time(connection: Connection) -> float:
    """Return seconds since 1970. PostgreSQL uses the database's clock, because the clocks of several machines
    differ."""
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time()
