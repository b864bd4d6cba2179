"""The times of a window: how they are read and written, and a clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from ...core.errors import FarshiftError

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    return datetime.now(UTC)


def moment(text: str) -> datetime:
    """A time as people write it, ISO 8601, UTC where it names no zone; `FarshiftError` for anything else."""
    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise FarshiftError(f"{text[:60]!r} is not a time: write it as 2026-12-01 or 2026-12-01T18:00:00Z") from error
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.replace(microsecond=0)


def stamp(time: datetime) -> str:
    """A time as the records write it."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
