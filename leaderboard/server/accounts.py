"""Who sends a request, and whether it is permitted: access tokens (`fs_` and 256 random bits; the database stores only
their sha256, so a leak of it reveals no token), and the quotas of a team."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from math import ceil
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, update

from ...core.errors import FarshiftError, SubmissionRejected, UnknownName
from ...core.text import escape_untrusted
from ..ledger.store import CHARGES, JOBS, TOKENS, Store, format_iso_time, read_database_time
from ..settings import ServerSettings
from ..submission.validate import Submission
from ..validation.archive import CARD
from ..validation.problem import Problems


class HTTPProblem(FarshiftError):
    """A refused request: its status, and the seconds after which it may be repeated (None: not given)."""

    def __init__(self, status: int, error: str, after: float | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.after = None if after is None else max(1, ceil(after))


class QuotaExceeded(HTTPProblem):
    """A quota is exceeded."""


_TOKEN = re.compile(r"fs_[A-Za-z0-9_-]{43}")
_DAYS = re.compile(r"([1-9][0-9]{0,4})d")


@dataclass(frozen=True)
class Token:
    """The record of a token. id: its name in lists; team: the team that may submit with it; times: seconds since
    1970."""

    id: str
    team: str
    created: float
    expires: float | None
    revoked: float | None

    def state(self, at: float) -> str:
        """Return `valid`, `expired` or `revoked`."""
        if self.revoked is not None:
            return "revoked"
        return "expired" if self.expires is not None and self.expires <= at else "valid"

    def record(self) -> dict[str, Any]:
        """Plain JSON."""
        times = {name: getattr(self, name) for name in ("created", "expires", "revoked")}
        shown = {name: None if time is None else format_iso_time(time) for name, time in times.items()}
        return {"id": self.id, "team": self.team, **shown}


def create_token(store: Store, team: str, expires: str = "") -> tuple[str, Token]:
    """Create a token. Returns the token, which is shown only this once, and its stored record. expires: days, such as
    `90d`."""
    if not team.strip() or not team.isprintable() or len(team) > 200:
        raise FarshiftError("a token belongs to a team: give the team's name as in its submissions (--team NAME)")
    days = _DAYS.fullmatch(expires)
    if expires and days is None:
        raise FarshiftError(f"--expires {escape_untrusted(expires)}: write a number of days, such as 90d")
    token = f"fs_{secrets.token_urlsafe(32)}"
    with store.writing() as connection:
        at = read_database_time(connection)
        ends = None if days is None else at + int(days[1]) * 86400
        record = Token(secrets.token_hex(4), team, at, ends, None)
        connection.execute(insert(TOKENS).values(**vars(record), hash=_hash_token(token)))
    return token, record


def list_tokens(store: Store) -> list[Token]:
    """Return all tokens, also expired and revoked ones, the oldest first."""
    with store.reading() as connection:
        return [_read_row(row) for row in connection.execute(select(TOKENS).order_by(TOKENS.c.created)).mappings()]


def revoke_token(store: Store, id: str) -> Token:
    """Revoke a token, so that it is no longer accepted."""
    known = {item.id: item for item in list_tokens(store)}
    if id not in known:
        raise UnknownName("token", id, known, "(farshift board token list)")
    with store.writing() as connection:
        if known[id].revoked is None:
            connection.execute(update(TOKENS).where(TOKENS.c.id == id).values(revoked=read_database_time(connection)))
        return _read_row(connection.execute(select(TOKENS).where(TOKENS.c.id == id)).mappings().one())


def require_not_revoked(store: Store, id: str) -> None:
    """Raise `SubmissionRejected` if a token was revoked since a submission was sent with it."""
    with store.reading() as connection:
        if connection.execute(select(TOKENS.c.revoked).where(TOKENS.c.id == id)).scalar() is not None:
            raise SubmissionRejected("the token that it was sent with was revoked")


def _hash_token(token: str) -> str:
    return sha256(token.encode()).hexdigest()


def _read_row(row: Mapping[Any, Any]) -> Token:
    return Token(**{name: row[name] for name in Token.__dataclass_fields__})


@dataclass(frozen=True)
class Sender:
    """The sender of a request. owner: whose quotas count, `team NAME` or, without a token, `address A`. team: the team
    that submissions must belong to; empty for any team. token: the token's id, or empty."""

    owner: str
    team: str = ""
    token: str = ""


def identify_sender(store: Store, settings: ServerSettings, authorisation: str, address: str) -> Sender:
    """Return the sender of a request with this `Authorization` header. Raises `HTTPProblem` (401) without a valid
    token, unless the board is open."""
    if not authorisation:
        if settings.open:
            return Sender(f"address {address}")
        raise HTTPProblem(401, "a token of your team is required: ask the board's operator for one")
    scheme, _, given = authorisation.partition(" ")
    row = None
    if scheme.lower() == "bearer" and _TOKEN.fullmatch(given.strip()):
        with store.reading() as connection:
            row = (
                connection.execute(select(TOKENS).where(TOKENS.c.hash == _hash_token(given.strip()))).mappings().first()
            )
            at = read_database_time(connection)
    if row is None:
        raise HTTPProblem(401, "this board does not know the token")
    token = _read_row(row)
    if (state := token.state(at)) != "valid":
        raise HTTPProblem(401, f"this token is {state}: ask the board's operator for a new one")
    return Sender(f"team {token.team}", token.team, token.id)


def require_team(submission: Submission, team: str) -> None:
    """Raise `BadSubmission` if a submission belongs to another team than the token."""
    problems = Problems()
    if (named := submission.card.team) != team:
        what = f"names the team {escape_untrusted(named)!r}, but the token is for {escape_untrusted(team)!r}"
        problems.add("team-other", CARD, what, "team")
    problems.refuse_if_any("the submission")


DAY = 86400.0
ARRIVING = "arriving"
"""The state of a submission whose body is being received."""
_SOON = 30
"""Seconds after which a submission to a full queue may be repeated."""


def charge_quota(connection: Connection, settings: ServerSettings, owner: str, size: int, job: str, at: float) -> None:
    """Count a submission against its owner's quotas. Raises `QuotaExceeded` if one would be exceeded."""
    if connection.dialect.name == "postgresql":  # servers must update a quota one after the other
        connection.exec_driver_sql("LOCK TABLE charges IN EXCLUSIVE MODE")
    connection.execute(delete(CHARGES).where(CHARGES.c.time <= at - DAY))
    query = select(CHARGES.c.time, CHARGES.c.size).where(CHARGES.c.owner == owner).order_by(CHARGES.c.time)
    spent = [(float(when), int(bytes)) for when, bytes in connection.execute(query).all()]
    if len(spent) >= settings.submissions_a_day:
        what = f"a team may submit {settings.submissions_a_day} times in 24 hours"
        raise QuotaExceeded(429, what, spent[-settings.submissions_a_day][0] + DAY - at)
    allowed = f"a team may submit {settings.bytes_a_day} bytes in 24 hours"
    if size > settings.bytes_a_day:
        raise QuotaExceeded(413, allowed)
    total, until = size + sum(bytes for _, bytes in spent), at
    for when, bytes in spent:
        if total <= settings.bytes_a_day:
            break
        total, until = total - bytes, when + DAY
    if until > at:
        raise QuotaExceeded(429, allowed, until - at)
    waiting = select(func.count()).where(JOBS.c.owner == owner, JOBS.c.state.in_((ARRIVING, "queued", "running")))
    if connection.execute(waiting).scalar_one() >= settings.queued_at_once:
        what = f"a team may have {settings.queued_at_once} submissions arriving or in the queue"
        raise QuotaExceeded(429, f"{what}: try again when one is done", _SOON)
    connection.execute(insert(CHARGES).values(owner=owner, time=at, size=size, job=job))
