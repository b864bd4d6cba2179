"""The time of day, and how long something took."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def get_utc_now() -> str:
    """The time in UTC, to the second, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Stopwatch:
    """Seconds of wall clock since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def seconds(self) -> float:
        return round(time.perf_counter() - self._start, 3)


def format_duration(seconds: float) -> str:
    """Seconds for people: two units at most."""
    total = round(seconds)
    if total < 1:
        return "under a second"
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    return f"{total // 3600} h {total % 3600 // 60} min"
