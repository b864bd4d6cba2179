"""Access tokens: `fs_` and 256 random bits. The database has their sha256 only: whoever reads it can use none."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from ....core.errors import FarshiftError, UnknownName
from ....core.listings.untrusted_text import escape_untrusted
from ...ledger.store import Store
from ..intake.job import format_iso_time
from ..tables import TOKENS, read_database_time
from .audit import get_operator, record_event

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "fs_"
SCOPES = ("hand-in", "submit")
"""What a token may be for: answers to sealed windows, and submissions."""

_TOKEN = re.compile(r"fs_[A-Za-z0-9_-]{43}")
_DAYS = re.compile(r"([1-9][0-9]{0,4})d")


@dataclass(frozen=True)
class Token:
    """What is known of a token. id: its name in lists; team: who may hand in with it; team_key: the public key that
    must have signed what is handed in, or empty; times: seconds since 1970."""

    id: str
    team: str
    team_key: str
    scopes: tuple[str, ...]
    created: float
    expires: float | None
    revoked: float | None

    @property
    def owner(self) -> str:
        """Whose quotas it counts against."""
        return f"team {self.team}"

    def state(self, at: float) -> str:
        """valid, expired or revoked."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= at else "valid"

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        times = {name: getattr(self, name) for name in ("created", "expires", "revoked")}
        shown = {name: None if time is None else format_iso_time(time) for name, time in times.items()}
        return {"id": self.id, "team": self.team, "key": self.team_key, "scopes": list(self.scopes), **shown}


def create_token(
    store: Store, team: str, key: str = "", scopes: tuple[str, ...] = SCOPES, expires: str = ""
) -> tuple[str, Token]:
    """Make a token: itself, which is told this once, and what is kept of it. expires: days, such as `90d`."""
    if not team.strip() or not team.isprintable() or len(team) > 200:
        raise FarshiftError("a token is a team's: name it as its submissions do (--team NAME)")
    if key and not re.fullmatch(r"[0-9a-f]{64}", key):
        raise FarshiftError("a team's public key has 64 hexadecimal digits: farshift team prints it")
    if unknown := sorted(set(scopes) - set(SCOPES)):
        raise FarshiftError(f"no scope is called {escape_untrusted(unknown[0])!r}: there are {', '.join(SCOPES)}")
    if not scopes:
        raise FarshiftError(f"a token without a scope is of no use: there are {', '.join(SCOPES)}")
    days = _DAYS.fullmatch(expires)
    if expires and days is None:
        raise FarshiftError(f"--expires {escape_untrusted(expires)} is no number of days, such as 90d")
    token = PREFIX + secrets.token_urlsafe(32)
    with store.committing() as connection:
        at = read_database_time(connection)
        ends = None if days is None else at + int(days[1]) * 86400
        record = Token(secrets.token_hex(4), team, key, tuple(sorted(set(scopes))), at, ends, None)
        row = {**vars(record), "scopes": " ".join(record.scopes), "hash": _hash_token(token)}
        connection.execute(insert(TOKENS).values(row))
        record_event(
            connection, get_operator(), "token-created", token=record.id, team=team, scopes=list(record.scopes)
        )
    return token, record


def list_tokens(store: Store) -> list[Token]:
    """Every token there was, the oldest first."""
    with store.reading() as connection:
        return [_read_row(row) for row in connection.execute(select(TOKENS).order_by(TOKENS.c.created)).mappings()]


def revoke_token(store: Store, id: str, reason: str = "") -> Token:
    """From now on nothing is taken with a token."""
    known = {item.id: item for item in list_tokens(store)}
    if id not in known:
        raise UnknownName("token", id, known, "(farshift board token list)")
    with store.committing() as connection:
        if known[id].revoked is None:
            connection.execute(update(TOKENS).where(TOKENS.c.id == id).values(revoked=read_database_time(connection)))
            record_event(connection, get_operator(), "token-revoked", token=id, team=known[id].team, reason=reason)
        return _read_row(connection.execute(select(TOKENS).where(TOKENS.c.id == id)).mappings().one())


def find_token(store: Store, token: str) -> tuple[Token, str] | None:
    """What is known of a token that somebody shows, and its state; None where there is no such token."""
    if not _TOKEN.fullmatch(token):
        return None
    hash = _hash_token(token)
    with store.reading() as connection:
        row = connection.execute(select(TOKENS).where(TOKENS.c.hash == hash)).mappings().first()
        at = read_database_time(connection)
    # The database compared digests, whose bytes nobody can choose; this says so once more, in constant time.
    if row is None or not compare_digest(row["hash"], hash):
        return None
    record = _read_row(row)
    return record, record.state(at)


def _hash_token(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _read_row(row: Mapping[Any, Any]) -> Token:
    fields = {name: row[name] for name in Token.__dataclass_fields__}
    return Token(**fields | {"scopes": tuple(str(row["scopes"]).split())})
