"""The times of a window: parsing, formatting, and a clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from ...core.errors import FarshiftError

Clock = Callable[[], datetime]


def get_utc_time() -> datetime:
    return datetime.now(UTC)


def parse_time(text: str) -> datetime:
    """Parse an ISO 8601 time, UTC if it names no zone; `FarshiftError` for anything else."""
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError as error:
        raise FarshiftError(f"{text[:60]!r} is not a time: write it as 2026-12-01 or 2026-12-01T18:00:00Z") from error
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    return time.replace(microsecond=0)


def format_time(time: datetime) -> str:
    """Format a time as in the ledger's records."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
