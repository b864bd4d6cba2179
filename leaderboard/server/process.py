"""One server process, started by `serving.py`: it answers at a socket that it inherits, until it is told to end or
whoever started it is gone.

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
"""Seconds after which a thread that computes tables or pages lets another one go on: answers are quick then, too. By
Python's own 0.005 each of an answer's steps waits as long."""
GRACE = 20
"""Seconds that requests in progress are given when the server is to end."""
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
    """The server of an application in this process, which is there for nothing else. proxy_headers: as in
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
    """Whoever started this process holds the other end of its standard input."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
