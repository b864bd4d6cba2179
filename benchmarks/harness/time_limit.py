"""A limit on how long a model may take over one batch, so that a model that hangs is named and nothing is lost."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

GRACE = 5.0
"""Seconds that native code, which no exception reaches, gets on top before the process is given up."""


class PredictTimeout(BaseException):
    """Raised inside the model's code. Not an `Exception`: a model's own `except Exception` must not swallow it."""


class TimeLimit:
    """`with limit.watching():` around a model's batches, and `with limit:` around each. The inner one raises
    `PredictTimeout` after `seconds` in the main thread's Python code.

    Code that never comes back to Python (a native loop, a lock) cannot be interrupted; where `give_up` is set it is
    called, from another thread, `GRACE` seconds later: it should end the process. Outside the main thread, and where
    the system has no interval timers, only `give_up` is left. `seconds` of 0 is not a limit.
    """

    def __init__(self, seconds: float, give_up: Callable[[], None] | None = None) -> None:
        self.seconds = seconds
        self._give_up = give_up
        self._deadline = float("inf")
        self._alarms = (
            seconds > 0 and hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()
        )
        if seconds > 0 and give_up is not None:
            threading.Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Answer to the alarm signal while the context lasts; once for all batches, since it costs a while."""
        if not self._alarms:
            yield
            return
        before = signal.signal(signal.SIGALRM, _raise_timeout)
        try:
            yield
        finally:
            signal.signal(signal.SIGALRM, before)

    def __enter__(self) -> None:
        if self.seconds > 0:
            self._deadline = time.monotonic() + self.seconds
            if self._alarms:
                signal.setitimer(signal.ITIMER_REAL, self.seconds)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._alarms:
            signal.setitimer(signal.ITIMER_REAL, 0)
        self._deadline = float("inf")

    def _watch(self) -> None:
        while time.monotonic() < self._deadline + GRACE:
            time.sleep(0.5)
        if self._give_up is not None:
            self._give_up()


def _raise_timeout(number: int, frame: FrameType | None) -> None:
    raise PredictTimeout
