"""Rate limits, as token buckets: in the memory of each server process, so that several allow as many times more."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import ceil
from threading import Lock

_MOST = 100_000
"""Names that are remembered; then those that have been silent are forgotten."""


class RequestRates:
    """a_minute: requests of each name, in the long run and at once."""

    def __init__(self, a_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.a_minute, self._clock = a_minute, clock
        self._left: dict[str, tuple[float, float]] = {}
        self._lock = Lock()

    def wait(self, name: str) -> int:
        """Seconds until a request of this name is due again: 0 where it may be answered now, and is counted."""
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
