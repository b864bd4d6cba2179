"""Serve a board on one port, with one or several server processes, and score submissions beside them."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ...core.engines import THREADS
from ...core.errors import FarshiftError
from ..board import Board
from .app import create_app, shorten_logged_path
from .connections import BACKLOG, IDLE_SECONDS, BoundedProtocol, handle_loop_error
from .worker import Workers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

OPTIONS = "FARSHIFT_SERVED_BOARD"
"""The environment variable by which the server processes receive their options."""

SWITCH = 0.0005
"""Thread switch interval in seconds, so that responses stay fast while a thread computes tables or pages. With Python's
default of 0.005, each step of a response would wait that long."""
GRACE = 20
"""Seconds that requests in progress may take when the server stops."""

log = logging.getLogger("farshift.requests")


def serve_board(
    location: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    servers: int = 1,
    workers: int = 0,
    url_prefix: str = "",
    proxy_headers: bool = False,
    on_ready: Callable[[str], None] = print,
) -> None:
    """Serve the board at a location until SIGINT or SIGTERM. `on_ready` is called with the address.

    servers: number of server processes; workers: how many submissions are scored at once, none for a copy of a board;
    url_prefix: as in `create_app`; proxy_headers: whether to trust forwarded client addresses from a proxy on this
    machine (or from those that FORWARDED_ALLOW_IPS names). Raises `FarshiftError` if the port is unavailable or the
    board cannot be opened."""
    import uvicorn

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    with ExitStack() as stack:
        line = stack.enter_context(open_listening_socket(host, port))
        published = create_app(location, url_prefix=url_prefix).state.published
        stack.callback(published.close)
        published.history()  # a board that cannot be opened is reported here
        os.environ[OPTIONS] = json.dumps({"location": location, "url_prefix": url_prefix})
        # There is one server process per core, so NumPy's threads would compete for cores. A value that is already set
        # in the environment stays.
        for name in THREADS:
            os.environ.setdefault(name, "1")
        if workers:
            stack.callback(Workers(Board(Path(location)), workers).start().stop)
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
            http=BoundedProtocol,
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
    return LogRequests(create_app(options["location"], url_prefix=options["url_prefix"], workers=0))


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
