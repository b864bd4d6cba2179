"""The sender of a request, and whether the request is permitted: tokens, rate limits, and the quotas of a team
(submissions and bytes in 24 hours, and submissions in the queue at once).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from threading import Lock
from typing import TYPE_CHECKING, Self

from sqlalchemy import delete, func, insert, select

from ...core.errors import FarshiftError
from ...core.text import escape_untrusted
from ..ledger.schema import CHARGES, JOBS
from ..ledger.store import Store
from ..settings import ServerSettings
from ..submission.validate import Submission
from ..teams import compute_fingerprint
from ..validation.archive import CARD
from ..validation.problem import Problems
from .tokens import commit_event, find_token

if TYPE_CHECKING:
    from sqlalchemy import Connection


class HTTPProblem(FarshiftError):
    """A refused request: its status, the seconds after which it may be repeated (None: not given), and, for a
    submission that does not validate, its `problems` as `farshift pack` lists them."""

    status = 400
    after: int | None = None
    problems: tuple[dict[str, str], ...] = ()

    @classmethod
    def make(cls, status: int, error: str, after: float | None = None, problems: Sequence[dict[str, str]] = ()) -> Self:
        problem = cls(error)
        problem.status, problem.problems = status, tuple(problems)
        problem.after = None if after is None else max(1, ceil(after))
        return problem


class QuotaExceeded(HTTPProblem):
    """A quota is exceeded."""


@dataclass(frozen=True)
class Sender:
    """The sender of a request. owner: whose quotas count, `team NAME` or, without a token, `address A`. team, team_key:
    the team that submissions must belong to; empty for any team. token: the token's id, or empty."""

    owner: str
    team: str = ""
    team_key: str = ""
    token: str = ""

    @property
    def name(self) -> str:
        """The sender's name in the audit log."""
        return f"token {self.token}" if self.token else self.owner


class Accounts:
    """The accounts of one board."""

    def __init__(self, store: Store, settings: ServerSettings) -> None:
        self.store, self.settings = store, settings
        self.rates = RequestRates(settings.requests_a_minute)

    def admit(self, address: str) -> None:
        """Count a request from an address. Raises `HTTPProblem` (429) if there were too many."""
        self._count(f"address {address}")

    def sender(self, authorisation: str, address: str, scope: str) -> Sender:
        """Return the sender of a request with this `Authorization` header that needs `scope`. Raises `HTTPProblem`: 401
        without a valid token, 403 if the token lacks the scope, 429 after too many requests."""
        self.admit(address)
        if not authorisation:
            if self.settings.open:
                return Sender(f"address {address}")
            raise HTTPProblem.make(401, "a token of your team is required: ask the board's operator for one")
        scheme, _, given = authorisation.partition(" ")
        match = find_token(self.store, given.strip()) if scheme.lower() == "bearer" else None
        if match is None:
            raise HTTPProblem.make(401, "this board does not know the token")
        token, state = match
        if state != "valid":
            raise HTTPProblem.make(401, f"this token is {state}: ask the board's operator for a new one")
        self._count(f"token {token.id}")
        if scope not in token.scopes:
            raise HTTPProblem.make(403, f"this token has the scope {', '.join(token.scopes)}, not {scope}")
        return Sender(token.owner, token.team, token.team_key, token.id)

    def refused(self, sender: Sender, what: str, why: str) -> None:
        """Record a refusal in the audit log."""
        commit_event(self.store, sender.name, what, owner=sender.owner, why=why)

    def _count(self, name: str) -> None:
        if after := self.rates.wait(name):
            raise HTTPProblem.make(429, "too many requests: try again later", after)


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
        raise QuotaExceeded.make(
            429,
            f"a team may submit {settings.submissions_a_day} times in 24 hours: try again later",
            spent[-settings.submissions_a_day][0] + DAY - at,
        )
    allowed = f"a team may submit {settings.bytes_a_day} bytes in 24 hours"
    if size > settings.bytes_a_day:
        raise QuotaExceeded.make(413, allowed)
    total, until = size + sum(bytes for _, bytes in spent), at
    for when, bytes in spent:
        if total <= settings.bytes_a_day:
            break
        total, until = total - bytes, when + DAY
    if until > at:
        raise QuotaExceeded.make(429, f"{allowed}: try again later", until - at)
    waiting = select(func.count()).where(JOBS.c.owner == owner, JOBS.c.state.in_((ARRIVING, "queued", "running")))
    if connection.execute(waiting).scalar_one() >= settings.queued_at_once:
        what = f"a team may have {settings.queued_at_once} submissions arriving or in the queue"
        raise QuotaExceeded.make(429, f"{what}: try again when one is done", _SOON)
    connection.execute(insert(CHARGES).values(owner=owner, time=at, size=size, job=job))


class RequestRates:
    """Counts of requests per name in the current minute, in the memory of each server process: with n processes the
    effective limit is n times as high. a_minute: requests per minute of each name."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.a_minute, self._clock = a_minute, clock
        self._minute, self._counts = 0, Counter[str]()
        self._lock = Lock()

    def wait(self, name: str) -> int:
        """Return the seconds until this name may send a request; 0 if it may now, in which case the request is
        counted."""
        with self._lock:
            minute, second = divmod(self._clock(), 60)
            if minute != self._minute:
                self._minute, self._counts = int(minute), Counter()
            if self._counts[name] >= self.a_minute:
                return ceil(60 - second)
            self._counts[name] += 1
            return 0


def require_team(submission: Submission, team: str, team_key: str) -> None:
    """Raise `BadSubmission` if a submission belongs to another team than the token, or, if the token names a key, is
    not signed by that key."""
    problems = Problems()
    if submission.team != team:
        what = f"names the team {escape_untrusted(submission.team)!r}, but the token is for {escape_untrusted(team)!r}"
        problems.add("team-other", CARD, what, "team")
    if team_key and submission.team_key != team_key:
        whose = f"signed by the key {compute_fingerprint(submission.team_key)}" if submission.team_key else "not signed"
        problems.add(
            "team-other", CARD, f"is {whose}, but the token is for the key {compute_fingerprint(team_key)}", "signature"
        )
    problems.refuse_if_any("the submission")
