"""A small real web server on loopback that answers range requests, with the faults that real ones have."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from loopback import listening


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


@dataclass
class Ranges:
    """Files by path; what was asked of them (path, first byte, last byte) and under which condition (If-Range); and by
    path the faults of the next answers, "" for an answer as it should be. `moved` redirects one path to another.

    Faults: "cut" (half the body, then the connection breaks), "stall" (half the body, then nothing for a while), a
    status such as "503", "429" (with the next of `retry_after`, else 0), "no-range" (the whole file), "shifted" (the bytes after those asked
    for, and saying so), "longer" (a Content-Length of one more byte), "flip" (one bit of the body is another),
    "changed" (another entity tag), "grown" (another length of the whole file)."""

    files: dict[str, bytes] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)
    asked: list[tuple[str, int, int]] = field(default_factory=list)
    conditions: list[str | None] = field(default_factory=list)
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
            return self._send(Answer(302, {"Location": site.url + site.moved[path]}, b""))
        queue = site.faults.get(path, [])
        fault = queue.pop(0) if queue else ""
        body = site.files.get(path)
        if body is None or fault.isdigit():
            pause = site.retry_after.pop(0) if site.retry_after and fault == "429" else "0"
            return self._send(Answer(int(fault or 404), {"Retry-After": pause} if fault == "429" else {}, b""))
        first, last = 0, len(body) - 1
        expected = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if expected and fault != "no-range":
            first, last = int(expected[1]), min(int(expected[2] or last), last)
        site.asked.append((path, first, last))
        site.conditions.append(self.headers.get("If-Range"))
        shift = fault == "shifted"
        answer = Answer(206 if expected and fault != "no-range" else 200, {}, body[first + shift : last + 1 + shift])
        if answer.status == 206:
            full = len(body) + (fault == "grown")
            answer.headers["Content-Range"] = f"bytes {first + shift}-{last + shift}/{full}"
        if site.tags:
            answer.headers["ETag"] = f'"{sha256(body + fault.encode() * (fault == "changed")).hexdigest()}"'
        if fault == "longer":
            answer.headers["Content-Length"] = str(len(answer.body) + 1)
        if fault == "flip":
            middle = len(answer.body) // 2
            answer.body = answer.body[:middle] + bytes([answer.body[middle] ^ 1]) + answer.body[middle + 1 :]
        return self._send(answer, fault)

    def _send(self, answer: Answer, fault: str = "") -> None:
        self.send_response(answer.status)
        for name, value in ({"Content-Length": str(len(answer.body))} | answer.headers).items():
            self.send_header(name, value)
        self.end_headers()
        half = fault in ("cut", "stall")
        self.wfile.write(answer.body[: len(answer.body) // 2] if half else answer.body)
        if half:
            self.wfile.flush()
            time.sleep(3.0 if fault == "stall" else 0)
            self.close_connection = True


@contextmanager
def serving(folder: Path) -> Iterator[Ranges]:
    """The files of a folder, served."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    site = Ranges({f"/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in files})
    with listening(_Handler, site=site) as site.url:
        yield site
