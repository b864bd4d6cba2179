"""Serve a board on one port, with one or several server processes, and score submissions beside them."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

from ...core.engines import THREADS
from ...core.errors import FarshiftError, MissingExtra
from ..board import Board
from .app import create_app, shorten_logged_path
from .worker import Workers

try:
    import uvicorn
    from uvicorn.protocols.http.h11_impl import H11Protocol
except ImportError as error:
    raise MissingExtra("the board's server", "server") from error

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPTIONS = "FARSHIFT_SERVED_BOARD"
"""The environment variable by which the server processes receive their options."""

SWITCH = 0.0005
"""Thread switch interval in seconds, so that responses stay fast while a thread computes tables or pages. With Python's
default of 0.005, each step of a response would wait that long."""
GRACE = 20
"""Seconds that requests in progress may take when the server stops."""
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

log = logging.getLogger("farshift.requests")
_connections_log = logging.getLogger("farshift.connections")


def serve_board(
    folder: Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    servers: int = 1,
    workers: int = 0,
    url_prefix: str = "",
    proxy_headers: bool = False,
    on_ready: Callable[[str], None] = print,
) -> None:
    """Serve the board in a folder until SIGINT or SIGTERM. `on_ready` is called with the address.

    servers: number of server processes; workers: how many submissions are scored at once;
    url_prefix: as in `create_app`; proxy_headers: whether to trust forwarded client addresses from a proxy on this
    machine (or from those that FORWARDED_ALLOW_IPS names). Raises `FarshiftError` if the port is unavailable or the
    board cannot be opened."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    with ExitStack() as stack:
        line = stack.enter_context(open_listening_socket(host, port))
        create_app(folder, url_prefix=url_prefix)  # a board that cannot be opened is reported here
        os.environ[OPTIONS] = json.dumps({"folder": str(folder), "url_prefix": url_prefix})
        # There is one server process per core, so NumPy's threads would compete for cores. A value that is already set
        # in the environment stays.
        for name in THREADS:
            os.environ.setdefault(name, "1")
        if workers:
            stack.callback(Workers(Board(folder), workers).start().stop)
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it has stopped
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: None))
        address, bound = line.getsockname()[:2]
        prefix = url_prefix.strip("/") + "/" if url_prefix.strip("/") else ""
        on_ready(f"http://{f'[{address}]' if ':' in address else address}:{bound}/{prefix}")
        uvicorn.run(
            f"{__name__}:make_served_app",
            factory=True,
            fd=line.fileno(),
            workers=servers,
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=proxy_headers,
            timeout_graceful_shutdown=GRACE,
            h11_max_incomplete_event_size=32 << 10,
            http=f"{__name__}:BoundedProtocol",  # by name: a child must answer its parent before it has imported this
            ws="none",
            backlog=BACKLOG,
        )


def open_listening_socket(host: str, port: int) -> socket.socket:
    """Open a listening socket with TCP_NODELAY: otherwise the body of a response waits until the client acknowledges
    the headers, which takes up to 40 ms."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server_socket = socket.create_server((host, port), family=family, backlog=1024)
        # Accepted connections inherit the option. asyncio sets it only if the socket states its protocol, which this
        # socket does not, and a socket from a descriptor does only on Linux.
        server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            server_socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * IDLE_SECONDS)
        os.set_inheritable(server_socket.fileno(), True)
        return server_socket
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise FarshiftError(f"{host}, port {port}: {why}: choose another (--host, --port)") from error


def make_served_app() -> ASGIApp:
    """Create the application of a server process, whose options are in the environment."""
    options = json.loads(os.environ[OPTIONS])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    sys.setswitchinterval(SWITCH)
    if (parent := multiprocessing.parent_process()) is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()
    return LogRequests(create_app(**options))


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """End this process when its parent ends."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


class LogRequests:
    """ASGI wrapper that logs each request: client, method, path, status, bytes, milliseconds. Headers, queries and full
    submission ids are never logged, so the log holds no secrets."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            asyncio.get_running_loop().set_exception_handler(handle_loop_error)
            return await self.app(scope, receive, send)
        began, status, size = time.perf_counter(), 0, 0

        async def send_counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, send_counted)
        finally:
            client = (scope.get("client") or ("-",))[0]
            took = 1000 * (time.perf_counter() - began)
            path = shorten_logged_path(scope["path"])
            log.info("%s %s %s %d %d B %.0f ms", client, scope["method"], path, status, size, took)


def limit_connections() -> int:
    """Return how many connections this process accepts: each may need two of its open files, one for its data."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST if files == resource.RLIM_INFINITY else max(16, min(MOST, (files - BACKLOG - SPARE) // 2))


class BoundedProtocol(H11Protocol):
    """uvicorn's protocol within bounds: how many connections there are, and how long one may wait for a request.
    Whoever sends nothing keeps nobody out: where all are in use, the one that has waited longest is closed."""

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
        _connections_log.warning(message, count + 1, *values)
        count, due = -1, now + _MINUTE
    _counts[message] = (count + 1, due)


def handle_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Handle an error of the event loop: asyncio reports each connection that it cannot accept, with a traceback."""
    if "accept()" in str(context.get("message")):
        log_each_minute("%d connections not accepted: %s", context.get("exception"))
    else:
        loop.default_exception_handler(context)
