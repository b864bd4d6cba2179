"""Bounds on the connections of a server process: how many there are, and how long one may wait for a request. Whoever
sends nothing cannot keep others out: where all are in use, the one that has waited longest is closed.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST = 2000
"""Connections of one server process, if its limit on open files allows as many."""
BACKLOG = 256
"""Connections that are accepted at once, before any is closed."""
SPARE = 128
"""Open files that are left for the database, the processes that read submissions, and the like."""
HEADERS_SECONDS = 10.0
"""Seconds until the headers of a request are complete, from the connection, or from the response before."""
IDLE_SECONDS = 60
"""Seconds without progress after which a connection whose client takes no data is dropped."""
_MINUTE = 60.0

log = logging.getLogger("farshift.connections")


def limit_connections() -> int:
    """Return how many connections this process accepts: each needs up to two of its open files, one for its data."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else max(16, min(MOST, (files - BACKLOG - SPARE) // 2))


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol within these bounds."""

    most = limit_connections()

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._begin_waiting()
        if len(self.connections) > self.most:
            oldest = next(iter(self._waiting))
            log_each_minute("%d connections closed: at most %d at once", self.most)
            oldest.transport.abort()
            oldest._end_waiting()
            self.connections.discard(oldest)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        before = self.cycle
        super().handle_events()
        if self.cycle is not before:
            self._end_waiting()

    def on_response_complete(self) -> None:
        self._begin_waiting()
        super().on_response_complete()

    @property
    def _waiting(self) -> dict[BoundedProtocol, asyncio.TimerHandle]:
        """The connections of this server that wait for a request, the longest first."""
        waiting: dict[BoundedProtocol, asyncio.TimerHandle] = vars(self.server_state).setdefault("waiting", {})
        return waiting

    def _begin_waiting(self) -> None:
        self._waiting[self] = self.loop.call_later(HEADERS_SECONDS, self.timeout_keep_alive_handler)

    def _end_waiting(self) -> None:
        if (timer := self._waiting.pop(self, None)) is not None:
            timer.cancel()


_counts: dict[str, tuple[int, float]] = {}
"""By message, how often it was not logged, and when it is logged again."""


def log_each_minute(message: str, *values: object) -> None:
    """Log a message at most once a minute, with how often it occurred since."""
    count, due = _counts.get(message, (0, 0.0))
    now = time.monotonic()
    if now >= due:
        log.warning(message, count + 1, *values)
        count, due = -1, now + _MINUTE
    _counts[message] = (count + 1, due)


def handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle an error of the event loop: asyncio reports each connection that it cannot accept, with a traceback."""
    if "accept()" in str(context.get("message")):
        log_each_minute("%d connections not accepted: %s", context.get("exception"))
    else:
        loop.default_exception_handler(context)
