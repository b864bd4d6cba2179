"""A real HTTP server on loopback for the length of a context, which leaves no thread and no port behind."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], OSError):  # a client may hang up when it likes
            super().handle_error(request, client_address)


@contextmanager
def listening(handler: type[BaseHTTPRequestHandler], **known: Any) -> Iterator[str]:
    """The server's address. Each request is answered by a `handler`, which has `known` as attributes. Headers and content
    are two packets: with Nagle's algorithm the second waits for 40 ms."""
    attributes = {"disable_nagle_algorithm": True} | known
    server = _Server(("127.0.0.1", 0), type("Handler", (handler,), attributes))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
