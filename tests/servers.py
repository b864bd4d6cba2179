"""Small real HTTP servers on loopback, with the faults that real ones have; more of those are in `hub_faults.py`."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from loopback import listening


@dataclass
class Site:
    """Files by path, with entity tags or without; and by path the faults of the next answers, "" for an answer as it
    should be. `moved` redirects one path to another. `requests`: each path and its header `Range`; `asked`: of those
    that were answered, the path and the first and last byte.

    Faults: a status such as "503", "grown" (another length of the whole file), "cut" (half the body, then the connection
    breaks), "other" (other bytes of the same length), "slow" (1 MiB every fifth of a second)."""

    files: dict[str, bytes] = field(default_factory=dict)
    tags: bool = False
    faults: dict[str, list[str]] = field(default_factory=dict)
    requests: list[tuple[str, str | None]] = field(default_factory=list)
    asked: list[tuple[str, int, int]] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    redirected: int = 0
    url: str = ""

    def bytes_asked(self, ending: str = "") -> int:
        return sum(last - first + 1 for path, first, last in self.asked if path.endswith(ending))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        site, path = self.site, self.path.split("?")[0]
        site.requests.append((path, self.headers.get("Range")))
        if path in site.moved:
            site.redirected += 1
            return self.send(302, {"Location": site.url + site.moved[path]})
        queue = site.faults.get(path, [])
        fault = queue.pop(0) if queue else ""
        body = site.files.get(path)
        if body is None or fault.isdigit():
            return self.send(int(fault or 404), {"Retry-After": "0"} if fault == "429" else {})
        if fault == "other":
            body = bytes(255 - byte for byte in body)
        first, last = 0, len(body) - 1
        headers = {"ETag": f'"{sha256(body).hexdigest()}"'} if site.tags else {}
        expected = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if expected:
            first, last = int(expected[1]), min(int(expected[2] or last), last)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(body) + (fault == 'grown')}"
        site.asked.append((path, first, last))
        return self.send(206 if expected else 200, headers, body[first : last + 1], fault)

    def send(self, status: int, headers: dict[str, str], body: bytes = b"", fault: str = "") -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "cut":
            self.wfile.write(body[: len(body) // 2])
            self.wfile.flush()
            self.close_connection = True
            self.connection.close()
            return
        for start in range(0, len(body), 1 << 20):
            self.wfile.write(body[start : start + (1 << 20)])
            if fault == "slow":
                time.sleep(0.2)


@contextmanager
def serve(site: Site, handler: type[Handler] = Handler) -> Iterator[Site]:
    with listening(handler, site=site) as site.url:
        yield site


def web(**files: bytes) -> AbstractContextManager[Site]:
    """A plain web server without entity tags: `with web() as site`."""
    return serve(Site({f"/{name}": content for name, content in files.items()}))


def serve_folder(folder: Path) -> AbstractContextManager[Site]:
    """The files of a folder, with entity tags."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return serve(Site({f"/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files}, tags=True))
