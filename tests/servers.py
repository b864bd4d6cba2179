"""Small real HTTP servers on loopback, with the faults that real ones have."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from loopback import listening


@dataclass
class Site:
    """Files by path, and for each path the faults that its next answers have, in order.

    Faults: "cut" (half the body, then the connection breaks), "404", "429", "500", "other" (other bytes of the same
    length), "short" (half the body, and a length that says so), "slow" (1 MiB every fifth of a second)."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    url: str = ""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        site, path = self.site, self.path.split("?")[0]
        site.requests.append((path, self.headers.get("Range")))
        queue = site.faults.get(path, [])
        fault = queue.pop(0) if queue else ""
        if fault in ("404", "429", "500") or path not in site.files:
            return self._refuse(int(fault or 404))
        body = site.files[path]
        if fault == "other":
            body = bytes(255 - byte for byte in body)
        if fault == "short":
            body = body[: len(body) // 2]
        start = 0
        if expected := self.headers.get("Range"):
            start = int(expected.removeprefix("bytes=").split("-")[0])
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        rest = body[start:]
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        if fault == "cut":
            self.wfile.write(rest[: len(rest) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.close()
            return None
        for piece in range(0, len(rest), 1 << 20):
            self.wfile.write(rest[piece : piece + (1 << 20)])
            if fault == "slow":
                time.sleep(0.2)
        return None

    def _refuse(self, status: int) -> None:
        self.send_response(status)
        if status == 429:
            self.send_header("Retry-After", "0")
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def _serving(site: Site, handler: type[_Handler]) -> Iterator[Site]:
    with listening(handler, site=site) as site.url:
        yield site


def web(**files: bytes) -> Any:
    """A plain web server: `with web() as site`."""
    return _serving(Site({f"/{name}": content for name, content in files.items()}), _Handler)
