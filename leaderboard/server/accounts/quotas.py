"""How much a team may hand in: submissions and bytes in 24 hours, and submissions that wait at once."""

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
"""Seconds after which a full queue is worth another try."""


class QuotaExceeded(FarshiftError):
    """A team has handed in as much as it may. `after`: seconds until it may again; None where it never may."""

    after: int | None = None

    @classmethod
    def because(cls, what: str, after: float | None) -> QuotaExceeded:
        error = cls(what)
        error.after = None if after is None else max(1, ceil(after))
        return error


def charge_quota(connection: Connection, settings: ServerSettings, owner: str, size: int, job: str, at: float) -> None:
    """Count a submission against its owner's quotas. `QuotaExceeded` where one would be exceeded."""
    connection.execute(delete(CHARGES).where(CHARGES.c.time <= at - DAY))
    check_quota(connection, settings, owner, size, at)
    connection.execute(insert(CHARGES).values(owner=owner, time=at, size=size, job=job))


def check_quota(connection: Connection, settings: ServerSettings, owner: str, size: int, at: float) -> None:
    """`QuotaExceeded` where a submission would exceed one of its owner's quotas."""
    whose = and_(CHARGES.c.owner == owner, CHARGES.c.time > at - DAY)
    query = select(CHARGES.c.time, CHARGES.c.size).where(whose).order_by(CHARGES.c.time)
    spent = [(float(time), int(bytes)) for time, bytes in connection.execute(query).all()]
    if len(spent) >= settings.submissions_a_day:
        raise QuotaExceeded.because(
            f"{settings.submissions_a_day} submissions are taken of a team in 24 hours: try again later",
            spent[-settings.submissions_a_day][0] + DAY - at,
        )
    if size > settings.bytes_a_day:
        raise QuotaExceeded.because(f"{settings.bytes_a_day} bytes are taken of a team in 24 hours", None)
    left = settings.bytes_a_day - size
    total = sum(bytes for _, bytes in spent)
    for time, bytes in spent:
        if total <= left:
            break
        total -= bytes
        until = time + DAY - at
    if sum(bytes for _, bytes in spent) > left:
        raise QuotaExceeded.because(
            f"{settings.bytes_a_day} bytes are taken of a team in 24 hours: try again later", until
        )
    waiting = select(func.count()).where(JOBS.c.owner == owner, JOBS.c.state.in_(("queued", "running")))
    if connection.execute(waiting).scalar_one() >= settings.queued_at_once:
        raise QuotaExceeded.because(
            f"{settings.queued_at_once} submissions of a team wait at once: try again when one is done", _SOON
        )


def refund_quota(connection: Connection, job: str) -> None:
    """Give back what a job was charged."""
    connection.execute(delete(CHARGES).where(CHARGES.c.job == job))
