"""A file on a web server, read by byte ranges: broken connections are resumed, and responses are validated.

Ranges are requested as in RFC 9110 (section 14). A response has to cover the range, come from the file that was opened
(same entity tag and length), and be complete. Transient errors are retried (`core/retry.py`), from the first missing
byte.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from ...core.errors import BadData, Unavailable, get_first_line
from ...core.files import is_offline
from ...core.retry import TransientError, call_with_retries, is_retryable, parse_retry_after
from .files import Cancelled, check_bounds

if TYPE_CHECKING:
    import httpx2

STALL = 30.0
"""The timeout of a connection in seconds without a byte."""

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")


class ChangedMeanwhile(BadData):
    """A file has changed since it was opened."""


@dataclass
class HttpFile:
    """A file of `size` bytes at `url`. `tag` is its entity tag, or else its modification time, in the first response;
    later responses have to have the same. `content` identifies the content if the address is immutable."""

    url: str
    size: int
    tag: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: str | None = None
    _moved: str | None = field(default=None, repr=False, compare=False)

    @classmethod
    def open(cls, url: str) -> HttpFile:
        """Open the file at `url`, with the length and tag that the server reports. Raises `Unavailable` if it reports
        no length."""

        def ask() -> HttpFile:
            # Request one byte instead of HEAD: some servers respond to HEAD differently from GET, or not at all.
            with _request_range(url, {"Range": "bytes=0-0"}) as answer:
                return cls(url, _read_length(url, answer), _read_tag(answer))

        return call_with_retries(ask, f"{url} could not be opened")

    @property
    def name(self) -> str:
        return self.url

    @property
    def identity(self) -> str | None:
        if self.content is not None or self.tag is None:
            return self.content
        return f"{self.url} {self.tag} {self.size}"

    def read(self, start: int, stop: int, cancel: Event) -> bytes:
        check_bounds(self, start, stop)
        got = bytearray()

        def wait(seconds: float) -> None:
            if cancel.wait(seconds):
                raise Cancelled

        if start < stop:
            what = f"{self.url}: bytes {start} to {stop} could not be read"
            call_with_retries(partial(self._read_more, start, stop, got, cancel), what, wait)
        return bytes(got)

    def _read_more(self, start: int, stop: int, got: bytearray, cancel: Event) -> None:
        """Append to `got` the missing bytes of [start, stop)."""
        at = start + len(got)
        headers = {"Range": f"bytes={at}-{stop - 1}"}
        if got and self.tag is not None and self.tag.startswith('"'):
            headers["If-Range"] = self.tag
        with self._request(headers) as answer:
            self._check(answer, at, stop)
            more = answer.headers.get("Content-Length") != str(stop - at)
            for piece in answer.iter_raw():
                got += piece[: stop - start - len(got)]
                if cancel.is_set():
                    raise Cancelled
                # A response has to be read to its end for its connection to be reused.
                if more and len(got) == stop - start:
                    return
        if len(got) < stop - start:
            raise TransientError(f"the response ended at byte {start + len(got)}")

    @contextmanager
    def _request(self, headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
        """Send a request to the address to which the last one was redirected, to save a request, as servers have rate
        limits. If that address has expired, the original one is used again."""
        moved = self._moved
        try:
            with _request_range(moved or self.url, headers if moved else {**self.headers, **headers}) as answer:
                if answer.history:
                    self._moved = str(answer.url)
                yield answer
        except Unavailable as error:
            if moved is None:
                raise
            self._moved = None
            raise TransientError(f"its redirected address was refused: {error}", pause=0.0) from error

    def _check(self, answer: httpx2.Response, at: int, stop: int) -> None:
        """Raise `BadData` if the file has changed, `Unavailable` if the server does not support ranges,
        `TransientError` if the response is not the requested range."""
        changed, tag = f"{self.url} changed since it was opened", _read_tag(answer)
        if self.tag is None:
            self.tag = tag
        elif tag != self.tag:
            raise ChangedMeanwhile(f"{changed} (entity tag {tag}, was {self.tag}): open it again")
        announced = answer.headers.get("Content-Length")
        if answer.status_code == 200:
            if _read_length(self.url, answer) != self.size:
                raise TransientError(f"a response of {announced} bytes for a file of {self.size}")
            if at:
                raise Unavailable(
                    f"{self.url}: the server does not support range requests, so single rows cannot be read: "
                    "download the files and stream from their folder"
                )
            return
        content_range = answer.headers.get("Content-Range", "none")
        match = _CONTENT_RANGE.fullmatch(content_range)
        if match is None or int(match[1]) != at or int(match[2]) < stop - 1:
            raise TransientError(f"bytes {at}-{stop - 1} were requested, but Content-Range is {content_range!r}")
        if match[3] not in ("*", str(self.size)):
            raise ChangedMeanwhile(f"{changed} ({match[3]} bytes, was {self.size}): open it again")
        if announced is not None and announced != str(int(match[2]) - at + 1):
            raise TransientError(f"Content-Length is {announced}, but Content-Range is {content_range!r}")


@contextmanager
def _request_range(url: str, headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
    """Request a range; the body of the response is not read yet. Raises `Unavailable` if a retry would not help."""
    import httpx2

    if is_offline():
        raise Unavailable(f"{url} was not requested: FARSHIFT_OFFLINE is set")
    try:
        client = _open_client()
    except (ValueError, ImportError, OSError) as error:  # invalid proxies or certificates in the environment
        raise Unavailable(f"{url} cannot be reached: {get_first_line(error)}") from error
    try:
        patience = httpx2.Timeout(STALL, connect=min(10.0, STALL))
        request_headers = {**headers, "Accept-Encoding": "identity"}
        with client.stream("GET", url, headers=request_headers, timeout=patience) as answer:
            if is_retryable(answer.status_code):
                pause = parse_retry_after(answer.headers.get("Retry-After"))
                raise TransientError(f"the server answered {answer.status_code}", pause)
            if answer.status_code == 416:
                raise BadData(f"{url} is shorter than expected: the server has no {headers['Range']}")
            if answer.status_code not in (200, 206):
                raise Unavailable(f"{url}: the server answered {answer.status_code} {answer.reason_phrase}")
            yield answer
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.TooManyRedirects, UnicodeError) as error:
        raise Unavailable(f"{url} cannot be reached: {get_first_line(error)}") from error
    except httpx2.ReadTimeout as error:
        raise TransientError(f"no byte was received for {STALL:g} seconds") from error
    except httpx2.TransportError as error:
        raise TransientError(str(error) or type(error).__name__) from error


_clients: dict[int, httpx2.Client] = {}


def _open_client() -> httpx2.Client:
    """The connections of this process: a forked process must not use its parent's."""
    import httpx2

    process = os.getpid()
    if process not in _clients:
        _clients.setdefault(process, httpx2.Client(follow_redirects=True, headers={"User-Agent": "farshift"}))
    return _clients[process]


def _read_length(url: str, answer: httpx2.Response) -> int:
    """The size of the whole file."""
    if answer.status_code == 206:
        match = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        length = "" if match is None else match[3]
    else:
        length = answer.headers.get("Content-Length", "")
    if not re.fullmatch("[0-9]{1,18}", length):
        raise Unavailable(
            f"{url}: the server does not report the size of the file: download it and stream from its folder"
        )
    return int(length)


def _read_tag(answer: httpx2.Response) -> str | None:
    tag: str | None = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
    return tag
