"""Access tokens (`fs_` and 256 random bits; the database stores only their sha256, so a leak of it reveals no token),
and the audit log of events that the ledger does not record: tokens created and revoked, quotas exceeded, and the
account of the operating system that removed an entry.
"""

from __future__ import annotations

import getpass
import json
import re
import secrets
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select, update

from ...core.errors import FarshiftError, SubmissionRejected, UnknownName
from ...core.text import escape_untrusted
from ..ledger.schema import AUDIT, TOKENS, format_iso_time, read_database_time
from ..ledger.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import Connection


PREFIX = "fs_"
SCOPES = ("hand-in", "submit")
"""The scopes of tokens: answers to sealed windows, and submissions."""

_TOKEN = re.compile(r"fs_[A-Za-z0-9_-]{43}")
_DAYS = re.compile(r"([1-9][0-9]{0,4})d")


@dataclass(frozen=True)
class Token:
    """The record of a token. id: its name in lists; team: the team that may submit with it; team_key: the public key
    that must have signed its submissions, or empty; times: seconds since 1970."""

    id: str
    team: str
    team_key: str
    scopes: tuple[str, ...]
    created: float
    expires: float | None
    revoked: float | None

    @property
    def owner(self) -> str:
        """The owner whose quotas it counts against."""
        return f"team {self.team}"

    def state(self, at: float) -> str:
        """Return `valid`, `expired` or `revoked`."""
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
    """Create a token. Returns the token, which is shown only this once, and its stored record. expires: days, such as
    `90d`."""
    if not team.strip() or not team.isprintable() or len(team) > 200:
        raise FarshiftError("a token belongs to a team: give the team's name as in its submissions (--team NAME)")
    if key and not re.fullmatch(r"[0-9a-f]{64}", key):
        raise FarshiftError("a team's public key has 64 hexadecimal digits: `farshift team` prints it")
    if unknown := sorted(set(scopes) - set(SCOPES)):
        raise FarshiftError(f"unknown scope {escape_untrusted(unknown[0])!r}: choose from {', '.join(SCOPES)}")
    if not scopes:
        raise FarshiftError(f"a token needs at least one scope: choose from {', '.join(SCOPES)}")
    days = _DAYS.fullmatch(expires)
    if expires and days is None:
        raise FarshiftError(f"--expires {escape_untrusted(expires)}: write a number of days, such as 90d")
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
    """Return all tokens, also expired and revoked ones, the oldest first."""
    with store.reading() as connection:
        return [_read_row(row) for row in connection.execute(select(TOKENS).order_by(TOKENS.c.created)).mappings()]


def revoke_token(store: Store, id: str, reason: str = "") -> Token:
    """Revoke a token, so that it is no longer accepted."""
    known = {item.id: item for item in list_tokens(store)}
    if id not in known:
        raise UnknownName("token", id, known, "(farshift board token list)")
    with store.committing() as connection:
        if known[id].revoked is None:
            connection.execute(update(TOKENS).where(TOKENS.c.id == id).values(revoked=read_database_time(connection)))
            record_event(connection, get_operator(), "token-revoked", token=id, team=known[id].team, reason=reason)
        return _read_row(connection.execute(select(TOKENS).where(TOKENS.c.id == id)).mappings().one())


def find_token(store: Store, token: str) -> tuple[Token, str] | None:
    """Return the record and state of a presented token; None if it is unknown."""
    if not _TOKEN.fullmatch(token):
        return None
    hash = _hash_token(token)
    with store.reading() as connection:
        row = connection.execute(select(TOKENS).where(TOKENS.c.hash == hash)).mappings().first()
        at = read_database_time(connection)
    # The database compared digests, whose bytes an attacker cannot choose; compare again in constant time.
    if row is None or not compare_digest(row["hash"], hash):
        return None
    record = _read_row(row)
    return record, record.state(at)


def require_not_revoked(store: Store, id: str) -> None:
    """Raise `SubmissionRejected` if a token was revoked since a submission was sent with it."""
    with store.reading() as connection:
        if connection.execute(select(TOKENS.c.revoked).where(TOKENS.c.id == id)).scalar() is not None:
            raise SubmissionRejected("the token that it was sent with was revoked")


def _hash_token(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _read_row(row: Mapping[Any, Any]) -> Token:
    fields = {name: row[name] for name in Token.__dataclass_fields__}
    return Token(**fields | {"scopes": tuple(str(row["scopes"]).split())})


@dataclass(frozen=True)
class Event:
    """An event. time: UTC, ISO 8601. who: `operator NAME`, `token ID` or `address A`. what: the kind of event, such as
    `token-created`. detail: plain JSON, which never contains a token."""

    time: str
    who: str
    what: str
    detail: dict[str, Any]


def record_event(connection: Connection, who: str, what: str, **detail: Any) -> None:
    """Record an event in the transaction of the change that it describes."""
    detail_json = json.dumps(detail, sort_keys=True, ensure_ascii=False)
    connection.execute(
        insert(AUDIT).values(time=read_database_time(connection), who=who, what=what, detail=detail_json)
    )


def commit_event(store: Store, who: str, what: str, **detail: Any) -> None:
    """Record an event in a separate transaction."""
    with store.committing() as connection:
        record_event(connection, who, what, **detail)


def read_events(store: Store) -> list[Event]:
    """Return all events, the oldest first."""
    with store.reading() as connection:
        rows = connection.execute(select(AUDIT).order_by(AUDIT.c.number)).mappings().all()
    return [Event(format_iso_time(row["time"]), row["who"], row["what"], json.loads(row["detail"])) for row in rows]


def get_operator() -> str:
    """Return the name of the user who runs a command on the board's machine."""
    try:
        return f"operator {getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "operator"
