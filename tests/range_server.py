"""A small real web server on loopback that answers range requests, redirects and refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from loopback import listening


@dataclass
class Ranges:
    """Files by path; what was asked of them (path, first byte, last byte); and by path the faults of the next answers,
    "" for an answer as it should be. `moved` redirects one path to another.

    Faults: a status such as "503", "429" (with the next of `retry_after`, else 0), or "grown" (another length of the
    whole file). More are in `hub_faults.py`."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    asked: list[tuple[str, int, int]] = field(default_factory=list)
    retry_after: list[str] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    redirected: int = 0
    tags: bool = True
    url: str = ""

    def bytes_asked(self, ending: str = "") -> int:
        return sum(last - first + 1 for path, first, last in self.asked if path.endswith(ending))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Ranges

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        path, site = self.path.split("?")[0], self.site
        if path in site.moved:
            site.redirected += 1
            return self._send(302, {"Location": site.url + site.moved[path]})
        queue = site.faults.get(path, [])
        fault = queue.pop(0) if queue else ""
        body = site.files.get(path)
        if body is None or fault.isdigit():
            pause = site.retry_after.pop(0) if site.retry_after and fault == "429" else "0"
            return self._send(int(fault or 404), {"Retry-After": pause} if fault == "429" else {})
        first, last = 0, len(body) - 1
        headers = {"ETag": f'"{sha256(body).hexdigest()}"'} if site.tags else {}
        expected = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if expected:
            first, last = int(expected[1]), min(int(expected[2] or last), last)
            headers["Content-Range"] = f"bytes {first}-{last}/{len(body) + (fault == 'grown')}"
        site.asked.append((path, first, last))
        return self._send(206 if expected else 200, headers, body[first : last + 1])

    def _send(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(folder: Path) -> Iterator[Ranges]:
    """The files of a folder, served."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    site = Ranges({f"/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files})
    with listening(_Handler, site=site) as site.url:
        yield site
