"""The tables of migration 0003, as queries name them. Its table of uploads in parts is not used any more.

The migration says its columns again, with what a query need not know (what may be null, what is unique): it is what was
run on boards that are there, and stays as it is whatever these tables become. A test holds the two to one another.
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
    """Seconds since 1970. In PostgreSQL by the database's clock: those of several machines differ."""
    if connection.dialect.name == "postgresql":
        return float(connection.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one())
    return time()
