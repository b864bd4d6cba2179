"""A submission in the queue: queued -> running -> entered, refused or failed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

QUEUED, RUNNING, ENTERED, REFUSED, FAILED = "queued", "running", "entered", "refused", "failed"
ENDED = (ENTERED, REFUSED, FAILED)


@dataclass(frozen=True)
class Job:
    """An acknowledged submission. owner: whose quota it counts against; team, team_key: those of its token, both empty
    without one; digest: sha256 of its file. Times are seconds since 1970. due: the earliest time to start it; lease:
    the time at which its worker's lease ends; position: its place in the queue, 1 for the next, 0 if it is not queued.
    reason: why it failed, or why it was refused if there are no `problems`."""

    id: str
    owner: str
    team: str
    team_key: str
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

    @classmethod
    def of(cls, row: Mapping[Any, Any], position: int = 0) -> Job:
        """Create a job from a row of the database table."""
        values = {name: row[name] for name in cls.__dataclass_fields__ if name != "position"}
        lists = {name: tuple(json.loads(row[name])) for name in ("entries", "problems")}
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


def format_iso_time(seconds: float) -> str:
    """Format a time in UTC as ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
