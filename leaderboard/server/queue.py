"""The queue of submissions, in the ledger's database. Each step is one transaction, durable when it returns.

A submission counts from the moment that its body begins to arrive. Owners take turns: the next job is the oldest of
the owner whose last attempt was longest ago.

A worker holds a job for the time of its lease, which it extends while it works. A job whose lease expires returns to
the queue; after several attempts it fails with a reason. So whichever process is killed, an acknowledged job is queued,
running on a lease that expires, or ended.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, func, insert, or_, select, update

from ...core.documents import parse_json
from ...core.text import format_count
from ..ledger.store import CHARGES, JOBS, Store, format_iso_time, read_database_time
from ..sealed.window import find_answered_window
from ..settings import ServerSettings
from .accounts import ARRIVING, DAY, charge_quota

QUEUED, RUNNING, ENTERED, REFUSED, FAILED = "queued", "running", "entered", "refused", "failed"
ENDED = (ENTERED, REFUSED, FAILED)

MAX_REASON = 1000
_WAITS = 5.0
"""Seconds until the second attempt; doubled before each later one."""
_REMEMBERED = 2000
"""How many jobs before the oldest that waits count when owners take turns."""


class Queue:
    """The queue of one board, which any number of processes may use. clock: for tests."""

    def __init__(self, store: Store, settings: ServerSettings, clock: Callable[[], float] | None = None) -> None:
        self.store, self.settings, self._clock = store, settings, clock

    def enqueue(
        self,
        id: str,
        owner: str,
        digest: str,
        size: int,
        *,
        team: str = "",
        token: str = "",
        created: float | None = None,
    ) -> tuple[Job, bool]:
        """Add a submission whose file is stored under `id`, and which arrived at `created`, by default now. Returns the
        job, and whether it now uses this file. The same bytes from the same owner are one job: if it is queued, running
        or entered, nothing changes; if it was refused or failed, it is queued again with this file. Raises
        `QuotaExceeded`."""
        with self._changing() as (connection, at):
            if connection.dialect.name == "postgresql":  # servers must update a quota one after the other
                connection.exec_driver_sql("LOCK TABLE charges IN EXCLUSIVE MODE")
            self._settle(connection, at)
            _release(connection, id)
            is_same_upload = and_(JOBS.c.owner == owner, JOBS.c.digest == digest)
            there = self._find(connection, is_same_upload)
            if there is not None and there.state not in (REFUSED, FAILED):
                return there, False
            charge_quota(connection, self.settings, owner, size, id, at)
            if there is not None:
                connection.execute(delete(JOBS).where(is_same_upload))
            sender = {"team": team, "token": token}
            times = {"created": at if created is None else created}
            _insert_job(connection, at, id=id, owner=owner, digest=digest, size=size, state=QUEUED, **sender, **times)
            job = self._find(connection, JOBS.c.id == id)
        assert job is not None
        return job, True

    def reserve(self, owner: str, size: int, id: str) -> None:
        """Count a submission whose body of at most `size` bytes begins to arrive, until `enqueue` or `release`. Raises
        `QuotaExceeded`."""
        with self._changing() as (connection, at):
            # Of a machine that is gone for good; others are released by `files.measure_arriving`.
            connection.execute(delete(JOBS).where(JOBS.c.state == ARRIVING, JOBS.c.created <= at - DAY))
            charge_quota(connection, self.settings, owner, size, id, at)
            _insert_job(connection, at, id=id, owner=owner, digest=id, size=size, state=ARRIVING)

    def release(self, id: str) -> bool:
        """Stop to count a submission that did not arrive. Returns False if it has arrived, or is not known."""
        with self._changing() as (connection, _):
            return _release(connection, id)

    def arriving(self) -> dict[str, tuple[str, int]]:
        """Return the owner and the reserved bytes of each submission that is arriving, by id."""
        return {job.id: (job.owner, job.size) for job in self.jobs((ARRIVING,))}

    def measure_owned(self, owner: str) -> int:
        """Return the bytes of an owner's submissions that are arriving, queued or running."""
        return sum(job.size for job in self.jobs((ARRIVING, QUEUED, RUNNING)) if job.owner == owner)

    def known(self, owner: str, digest: str) -> Job | None:
        """Return the owner's job with this digest."""
        with self.store.reading() as connection:
            return self._find(connection, and_(JOBS.c.owner == owner, JOBS.c.digest == digest))

    def find(self, id: str) -> Job | None:
        """Return the job with this id."""
        with self.store.reading() as connection:
            return self._find(connection, JOBS.c.id == id)

    def jobs(self, states: Sequence[str] = (QUEUED, RUNNING, *ENDED)) -> list[Job]:
        """Return the jobs in some states, in order of submission."""
        with self.store.reading() as connection:
            query = select(JOBS).where(JOBS.c.state.in_(states)).order_by(JOBS.c.number)
            rows = connection.execute(query).mappings().all()
            places = {id: position for position, id in enumerate(_list_waiting(connection), 1)}
        return [Job.of(row, places.get(row["id"], 0)) for row in rows]

    def counts(self) -> dict[str, int]:
        """Return the number of jobs in each state."""
        with self.store.reading() as connection:
            rows = connection.execute(select(JOBS.c.state, func.count()).group_by(JOBS.c.state)).all()
        counts = {str(state): int(count) for state, count in rows}
        return {state: counts.get(state, 0) for state in (QUEUED, RUNNING, *ENDED)}

    def take(self, worker: str) -> Job | None:
        """Lease the next job that is due to this worker; None if there is none."""
        with self.store.reading() as connection:  # take no lock if the queue is empty
            at = self._now(connection)
            waiting = or_(
                and_(JOBS.c.state == QUEUED, JOBS.c.due <= at), and_(JOBS.c.state == RUNNING, JOBS.c.lease < at)
            )
            if connection.execute(select(JOBS.c.id).where(waiting).limit(1)).first() is None:
                return None
        with self._changing() as (connection, at):
            self._settle(connection, at)
            running = {"state": RUNNING, "worker": worker, "lease": at + self.settings.lease_seconds, "updated": at}
            for id in _list_waiting(connection, at):
                free = select(JOBS.c.id).where(JOBS.c.id == id, JOBS.c.state == QUEUED)
                if connection.execute(free.with_for_update(skip_locked=True)).first() is not None:
                    job = update(JOBS).where(JOBS.c.id == id)
                    connection.execute(job.values(**running, attempts=JOBS.c.attempts + 1))
                    return self._find(connection, JOBS.c.id == id)
        return None

    def limit_attempt(self, job: Job) -> float:
        """Return the seconds that this attempt may take, so that all attempts together take at most
        `scoring_seconds`: an attempt that breaks is only repeated if it took no more than its share."""
        return self.settings.scoring_seconds * (1 - (job.attempts - 1) / self.settings.attempts)

    def extend(self, job: Job) -> bool:
        """Extend a worker's lease of a job. Returns False if the worker has lost the lease."""
        with self._changing() as (connection, at):
            lease = {"lease": at + self.settings.lease_seconds}
            return connection.execute(update(JOBS).where(_match_attempt(job)).values(lease)).rowcount == 1

    def entered(self, job: Job, entries: Sequence[str]) -> bool:
        """Mark a job as entered in the ledger. Returns False if the worker has lost the lease; so do the methods
        below."""
        return self._end(job, ENTERED, entries=json.dumps(list(entries)))

    def refused(self, job: Job, reason: str, problems: Sequence[dict[str, str]] = ()) -> bool:
        """Mark a job as refused: its submission is not valid. It still counts against the quota."""
        return self._end(job, REFUSED, reason=reason[:MAX_REASON], problems=json.dumps(list(problems)))

    def broke(self, job: Job, reason: str) -> bool:
        """Record a failed attempt: the job is queued again, or fails after its last attempt, or a long one."""
        with self._changing() as (connection, at):
            row = connection.execute(select(JOBS).where(_match_attempt(job)).with_for_update()).mappings().first()
            if row is not None:
                share = self.settings.scoring_seconds / self.settings.attempts
                self._again(connection, row, at, reason, final=at - row["updated"] > share)
            return row is not None

    def give_back(self, job: Job) -> bool:
        """Return the job of a stopped worker to the queue, without counting an attempt."""
        with self._changing() as (connection, at):
            back = {"state": QUEUED, "lease": None, "worker": "", "updated": at, "attempts": JOBS.c.attempts - 1}
            return connection.execute(update(JOBS).where(_match_attempt(job)).values(back)).rowcount == 1

    def settle(self) -> None:
        """Return jobs with expired leases to the queue."""
        with self._changing() as (connection, at):
            self._settle(connection, at)

    def _settle(self, connection: Connection, at: float) -> None:
        late = select(JOBS).where(JOBS.c.state == RUNNING, JOBS.c.lease < at).with_for_update(skip_locked=True)
        for row in connection.execute(late).mappings().all():
            self._again(connection, row, at, "its worker stopped, or lost the connection to the database")

    def _again(self, connection: Connection, row: Any, at: float, reason: str, final: bool = False) -> None:
        ends = final or row["attempts"] >= self.settings.attempts
        due = at + (0.0 if ends else _WAITS * 2.0 ** (row["attempts"] - 1))
        values: dict[str, Any] = {"state": QUEUED, "lease": None, "worker": "", "updated": at, "due": due}
        if ends:
            failed = f"{format_count(row['attempts'], 'attempt')} failed: {reason}"
            values |= {"state": FAILED, "reason": failed[:MAX_REASON]}
        connection.execute(update(JOBS).where(JOBS.c.id == row["id"]).values(values))

    def _end(self, job: Job, state: str, **values: str) -> bool:
        with self._changing() as (connection, at):
            ended = {"state": state, "lease": None, "updated": at, **values}
            return connection.execute(update(JOBS).where(_match_attempt(job)).values(ended)).rowcount == 1

    def _find(self, connection: Connection, which: ColumnElement[bool]) -> Job | None:
        row = connection.execute(select(JOBS).where(which)).mappings().first()
        if row is None:
            return None
        waiting = _list_waiting(connection) if row["state"] == QUEUED else []
        return Job.of(row, waiting.index(row["id"]) + 1 if row["id"] in waiting else 0)

    @contextmanager
    def _changing(self) -> Iterator[tuple[Connection, float]]:
        with self.store.writing() as connection:
            yield connection, self._now(connection)

    def _now(self, connection: Connection) -> float:
        return read_database_time(connection) if self._clock is None else self._clock()


def _insert_job(connection: Connection, at: float, **values: Any) -> None:
    times = {"created": at, "updated": at, "due": at, "lease": None}
    empty: dict[str, Any] = dict.fromkeys(("team", "token", "worker", "reason"), "")
    empty |= {"attempts": 0, "entries": "[]", "problems": "[]"}
    connection.execute(insert(JOBS).values(empty | times | values))


def _release(connection: Connection, id: str) -> bool:
    released = connection.execute(delete(JOBS).where(JOBS.c.id == id, JOBS.c.state == ARRIVING)).rowcount == 1
    if released:
        connection.execute(delete(CHARGES).where(CHARGES.c.job == id))
    return released


def _list_waiting(connection: Connection, at: float = float("inf")) -> list[str]:
    """Return the ids of the queued jobs that are due, in the order in which they are taken."""
    waiting = and_(JOBS.c.state == QUEUED, JOBS.c.due <= at)
    query = select(JOBS.c.number, JOBS.c.id, JOBS.c.owner).where(waiting).order_by(JOBS.c.number)
    if not (jobs := connection.execute(query).all()):
        return []
    recent = and_(JOBS.c.number > jobs[0].number - _REMEMBERED, JOBS.c.attempts > 0)
    attempts = select(JOBS.c.owner, func.max(JOBS.c.updated)).where(recent).group_by(JOBS.c.owner)
    last = {owner: time for owner, time in connection.execute(attempts)}
    rounds, keys = Counter[str](), dict[str, tuple[int, float]]()
    for _, id, owner in jobs:
        rounds[owner] += 1
        keys[id] = (rounds[owner], last.get(owner, 0.0))
    return sorted(keys, key=keys.__getitem__)


def _match_attempt(job: Job) -> ColumnElement[bool]:
    """Return the row of a job while its worker holds the lease of this attempt."""
    return and_(
        JOBS.c.id == job.id,
        JOBS.c.state == RUNNING,
        JOBS.c.worker == job.worker,
        JOBS.c.attempts == job.attempts,
    )


@dataclass(frozen=True)
class Job:
    """An acknowledged submission. owner: whose quota it counts against; team: that of its token, empty without
    one; digest: sha256 of its file. Times are seconds since 1970. created: when it arrived; due: the earliest
    time to start it; lease: the time at which its worker's lease ends; position: its place in the queue, 1 for the
    next, 0 if it is not queued.
    reason: why it failed, or why it was refused if there are no `problems`."""

    id: str
    owner: str
    team: str
    token: str
    digest: str
    size: int
    state: str
    created: float
    updated: float
    due: float
    lease: float | None
    worker: str
    attempts: int
    entries: tuple[str, ...]
    problems: tuple[dict[str, str], ...]
    reason: str
    position: int = 0

    @property
    def window(self) -> str:
        """The sealed window that it answers; empty for a submission to the tables."""
        return find_answered_window(self.owner)

    @classmethod
    def of(cls, row: Mapping[Any, Any], position: int = 0) -> Job:
        """Create a job from a row of the database table."""
        values = {name: row[name] for name in cls.__dataclass_fields__ if name != "position"}
        lists = {name: tuple(parse_json(row[name])) for name in ("entries", "problems")}
        return cls(**values | lists, position=position)

    def record(self) -> dict[str, Any]:
        """Return the public state as plain JSON, for clients that know the id."""
        record: dict[str, Any] = {
            "id": self.id,
            "state": self.state,
            "digest": self.digest,
            "bytes": self.size,
            "received": format_iso_time(self.created),
            "updated": format_iso_time(self.updated),
            "attempts": self.attempts,
            "entries": list(self.entries),
            "problems": list(self.problems),
            "reason": self.reason,
        }
        return record | ({"position": self.position} if self.state == QUEUED else {})
