"""One server process, started by `serving.py`. It serves an inherited socket until it is told to stop or its parent
process ends.

    python -m farshift.leaderboard.server.process '{"place": .., "fd": .., ..}'
"""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import sys
from threading import Thread
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError, get_first_line
from .app import create_app
from .requests import LogRequests

if TYPE_CHECKING:
    from fastapi import FastAPI
    from uvicorn import Server

SWITCH = 0.0005
"""Thread switch interval in seconds, so that responses stay fast while a thread computes tables or pages. With Python's
default of 0.005, each step of a response would wait that long."""
GRACE = 20
"""Seconds that requests in progress may take when the server stops."""
HEADER_BYTES = 32 << 10


def main() -> None:
    options: dict[str, Any] = json.loads(sys.argv[1])
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s", stream=sys.stderr)
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        _run_server(options)
    except FarshiftError as error:
        print(f"farshift: error: {get_first_line(error)}", file=sys.stderr)
        sys.exit(2)


def _run_server(options: dict[str, Any]) -> None:
    app = create_app(options["place"], url_prefix=options["url_prefix"], workers=0)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    make_server(app, options["proxy_headers"]).run(sockets=[socket.socket(fileno=options["fd"])])


def make_server(app: FastAPI, proxy_headers: bool = False) -> Server:
    """Create the HTTP server of an application, in a process that does nothing else. proxy_headers: as in
    `serving.serve_board`."""
    import uvicorn

    sys.setswitchinterval(SWITCH)
    config = uvicorn.Config(
        LogRequests(app),
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=proxy_headers,
        timeout_graceful_shutdown=GRACE,
        h11_max_incomplete_event_size=HEADER_BYTES,
        http="h11",
    )
    return uvicorn.Server(config)


def _end_with_parent() -> None:
    """Stop when standard input closes: the parent process holds its other end."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
