"""Quotas of a team: submissions and bytes in 24 hours, and submissions in the queue at once."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, func, insert, select

from ....core.errors import FarshiftError
from ..settings import ServerSettings
from ..tables import CHARGES, JOBS

if TYPE_CHECKING:
    from sqlalchemy import Connection

DAY = 86400.0
_SOON = 30
"""Seconds after which a submission to a full queue may be repeated."""


class QuotaExceeded(FarshiftError):
    """A quota is exceeded. `after`: seconds until a new attempt is possible; None if it never is."""

    after: int | None = None

    @classmethod
    def because(cls, what: str, after: float | None) -> QuotaExceeded:
        error = cls(what)
        error.after = None if after is None else max(1, ceil(after))
        return error


def charge_quota(connection: Connection, settings: ServerSettings, owner: str, size: int, job: str, at: float) -> None:
    """Count a submission against its owner's quotas. Raises `QuotaExceeded` if one would be exceeded."""
    connection.execute(delete(CHARGES).where(CHARGES.c.time <= at - DAY))
    check_quota(connection, settings, owner, size, at)
    connection.execute(insert(CHARGES).values(owner=owner, time=at, size=size, job=job))


def check_quota(connection: Connection, settings: ServerSettings, owner: str, size: int, at: float) -> None:
    """Raise `QuotaExceeded` if a submission would exceed one of its owner's quotas."""
    whose = and_(CHARGES.c.owner == owner, CHARGES.c.time > at - DAY)
    query = select(CHARGES.c.time, CHARGES.c.size).where(whose).order_by(CHARGES.c.time)
    spent = [(float(time), int(bytes)) for time, bytes in connection.execute(query).all()]
    if len(spent) >= settings.submissions_a_day:
        raise QuotaExceeded.because(
            f"a team may submit {settings.submissions_a_day} times in 24 hours: try again later",
            spent[-settings.submissions_a_day][0] + DAY - at,
        )
    if size > settings.bytes_a_day:
        raise QuotaExceeded.because(f"a team may submit {settings.bytes_a_day} bytes in 24 hours", None)
    left = settings.bytes_a_day - size
    total = sum(bytes for _, bytes in spent)
    for time, bytes in spent:
        if total <= left:
            break
        total -= bytes
        until = time + DAY - at
    if sum(bytes for _, bytes in spent) > left:
        raise QuotaExceeded.because(
            f"a team may submit {settings.bytes_a_day} bytes in 24 hours: try again later", until
        )
    waiting = select(func.count()).where(JOBS.c.owner == owner, JOBS.c.state.in_(("queued", "running")))
    if connection.execute(waiting).scalar_one() >= settings.queued_at_once:
        raise QuotaExceeded.because(
            f"a team may have {settings.queued_at_once} submissions in the queue: try again when one is done", _SOON
        )


def refund_quota(connection: Connection, job: str) -> None:
    """Refund the quota that a job was charged."""
    connection.execute(delete(CHARGES).where(CHARGES.c.job == job))
