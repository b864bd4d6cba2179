"""The time of day, and how long something took."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> str:
    """The time in UTC, to the second, ISO 8601."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Stopwatch:
    """Seconds of wall clock since it was made."""

    def __init__(self) -> None:
        self._start = time.perf_counter()

    def seconds(self) -> float:
        return round(time.perf_counter() - self._start, 3)
