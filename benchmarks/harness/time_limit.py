"""A time limit for one batch, so that a model that hangs is reported and no prediction is lost."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

GRACE = 5.0
"""Additional seconds for native code, which no exception can interrupt, before the process is ended."""


class PredictTimeout(BaseException):
    """Raised inside the model's code. Not an `Exception`, so that the model's own `except Exception` does not catch
    it."""


class TimeLimit:
    """`with limit.watching():` around a model's batches, and `with limit:` around each of them, which raises
    `PredictTimeout` after `seconds` in Python code of the main thread.

    Code that does not return to Python (a native loop, a lock) cannot be interrupted; `give_up`, if set, is called from
    another thread `GRACE` seconds later and should end the process. Outside the main thread, and on systems without
    interval timers, only `give_up` applies. `seconds` of 0 means no limit.
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
        """Handle the alarm signal within the context; once for all batches, since setting a handler takes time."""
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
