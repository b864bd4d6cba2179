"""Rate limits as token buckets, in the memory of each server process: with n processes the effective limit is n times
as high."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil
from threading import Lock

_MOST = 100_000
"""Maximum number of names in memory; above it, names with full buckets are dropped."""


class RequestRates:
    """A token bucket per name. a_minute: requests per minute of each name, and the burst size."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.a_minute, self._clock = a_minute, clock
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def wait(self, name: str) -> int:
        """Return the seconds until this name may send a request; 0 if it may now, in which case the request is
        counted."""
        with self._lock:
            at = self._clock()
            if len(self._left) >= _MOST:
                self._left = {key: had for key, had in self._left.items() if self._filled(had, at) < self.a_minute}
            left = self._filled(self._left.get(name, (float(self.a_minute), at)), at)
            if left >= 1:
                self._left[name] = (left - 1, at)
                return 0
            self._left[name] = (left, at)
            return ceil((1 - left) * 60 / self.a_minute)

    def _filled(self, had: tuple[float, float], at: float) -> float:
        left, then = had
        return min(float(self.a_minute), left + (at - then) * self.a_minute / 60)
