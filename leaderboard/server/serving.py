"""Serve a board on one port, with one or several server processes, and score submissions beside them."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from ...core.engines import THREADS
from ...core.errors import FarshiftError, MissingExtra
from ..board import Board
from .app import create_app, shorten_logged_path
from .worker import Workers

try:
    import uvicorn
except ImportError as error:
    raise MissingExtra("the board's server", "server") from error

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LOCATION = "FARSHIFT_SERVED_BOARD"
"""The environment variable by which the server processes receive the board's location."""

GRACE = 20
"""Seconds that requests in progress may take when the server stops."""


def serve_board(
    location: str,
    host: str = "127.0.0.1",
    port: int = 8000,
    *,
    servers: int = 1,
    workers: int = 0,
    proxy_headers: bool = False,
    on_ready: Callable[[str], None] = print,
) -> None:
    """Serve the board at a location until SIGINT or SIGTERM. `on_ready` is called with the address.

    servers: number of server processes; workers: how many submissions are scored at once, none for a copy of a board;
    proxy_headers: whether to trust forwarded client addresses from a proxy on this machine (or from those that
    FORWARDED_ALLOW_IPS names). Raises `FarshiftError` if the port is unavailable or the board cannot be opened."""
    with ExitStack() as stack:
        line = stack.enter_context(open_listening_socket(host, port))
        published = create_app(location).state.published
        stack.callback(published.close)
        published.history()  # a board that cannot be opened is reported here
        os.environ[LOCATION] = location
        # There is one server process per core, so NumPy's threads would compete for cores. A value that is already set
        # in the environment stays.
        for name in THREADS:
            os.environ.setdefault(name, "1")
        _log_to_stderr()
        if workers:
            stack.callback(Workers(Board(Path(location)), workers).start().stop)
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it has stopped
            stack.callback(signal.signal, number, signal.signal(number, lambda *_: None))
        address, bound = line.getsockname()[:2]
        on_ready(f"http://{f'[{address}]' if ':' in address else address}:{bound}/")
        uvicorn.run(
            f"{__name__}:make_served_app",
            factory=True,
            fd=line.fileno(),
            workers=servers,
            lifespan="on",
            log_config=None,
            server_header=False,
            proxy_headers=proxy_headers,
            timeout_graceful_shutdown=GRACE,
            h11_max_incomplete_event_size=32 << 10,
            http="h11",
            ws="none",
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
        os.set_inheritable(server_socket.fileno(), True)
        return server_socket
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise FarshiftError(f"{host}, port {port}: {why}: choose another (--host, --port)") from error


def make_served_app() -> ASGIApp:
    """Create the application of a server process, of the board that the environment names."""
    _log_to_stderr()
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    if (parent := multiprocessing.parent_process()) is not None:
        Thread(target=_end_with, args=(parent,), daemon=True).start()
    return create_app(os.environ[LOCATION])


def _end_with(parent: multiprocessing.process.BaseProcess) -> None:
    """End this process when its parent ends."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)


def _log_to_stderr() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    logging.getLogger("uvicorn.access").addFilter(_hide_secrets)


def _hide_secrets(record: logging.LogRecord) -> bool:
    """Leave queries and most of a submission's id, which grants access, out of a request's line of the log."""
    if isinstance(record.args, tuple) and len(record.args) == 5:
        client, method, path, version, status = record.args
        record.args = (client, method, shorten_logged_path(str(path).partition("?")[0]), version, status)
    return True
