"""A file on a web server, by byte ranges: broken connections are resumed, wrong answers are never taken for data.

A range is asked for as RFC 9110 (section 14) says. An answer must cover it, come from the file that was opened (the
same entity tag and length), and arrive whole. What may pass is tried again (`core/retry.py`), from the first byte that
is missing.
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

from ...core.errors import BadData, Unavailable, first_line
from ...core.files import offline
from ...core.retry import Broken, may_pass, persist, retry_after
from . import Halted

if TYPE_CHECKING:
    import httpx2

STALL = 30.0
"""Seconds without a byte, after which a connection counts as broken."""

_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")


class ChangedMeanwhile(BadData):
    """A file is another one than when it was opened."""


@dataclass
class HttpFile:
    """A file of `size` bytes at `url`. `tag`, its entity tag or else its time of change, is that of the first answer,
    and every later answer must have the same. `content` names the content where the address does so for ever."""

    url: str
    size: int
    tag: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    content: str | None = None
    _moved: str | None = field(default=None, repr=False, compare=False)

    @classmethod
    def open(cls, url: str, headers: Mapping[str, str] | None = None, content: str | None = None) -> HttpFile:
        """The file at `url`, its length and tag as the server tells them. `Unavailable` where it does not."""
        query = dict(headers or {})

        def ask() -> HttpFile:
            # One byte and not HEAD: some servers answer HEAD otherwise than GET, or not at all.
            with _requested(url, query | {"Range": "bytes=0-0"}) as answer:
                return cls(url, _length(url, answer), _tag(answer), query, content)

        return persist(ask, f"{url} could not be opened")

    @property
    def name(self) -> str:
        return self.url

    @property
    def identity(self) -> str | None:
        if self.content is not None or self.tag is None:
            return self.content
        return f"{self.url} {self.tag} {self.size}"

    def read(self, start: int, stop: int, halt: Event) -> bytes:
        if not 0 <= start <= stop <= self.size:
            raise BadData(
                f"{self.url} has {self.size} bytes, and bytes {start} to {stop} were asked for: it was cut off"
            )
        got = bytearray()
        if start < stop:
            what = f"{self.url}: bytes {start} to {stop} could not be had"
            persist(lambda: self._go_on(start, stop, got, halt), what, partial(_wait, halt))
        return bytes(got)

    def _go_on(self, start: int, stop: int, got: bytearray, halt: Event) -> None:
        """Add to `got` what is missing of [start, stop)."""
        at = start + len(got)
        headers = {"Range": f"bytes={at}-{stop - 1}"}
        if got and self.tag is not None and self.tag.startswith('"'):
            headers["If-Range"] = self.tag
        with self._requested_where_it_is(headers) as answer:
            self._check(answer, at, stop)
            more = answer.headers.get("Content-Length") != str(stop - at)
            for piece in answer.iter_raw():
                got += piece[: stop - start - len(got)]
                if halt.is_set():
                    raise Halted
                # An answer that is read to its end leaves the connection for the next one.
                if more and len(got) == stop - start:
                    return
        if len(got) < stop - start:
            raise Broken(f"the answer ended at byte {start + len(got)}")

    @contextmanager
    def _requested_where_it_is(self, headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
        """The answer to a request, asked where the last one was redirected to: one way instead of two, and servers
        count requests. Such an address may end; then the first one is asked again."""
        moved = self._moved
        if moved is None:
            with _requested(self.url, {**self.headers, **headers}) as answer:
                if answer.history:
                    self._moved = str(answer.url)
                yield answer
            return
        try:
            with _requested(moved, headers) as answer:
                yield answer
        except Unavailable as error:
            self._moved = None
            raise Broken(f"its redirected address was refused: {error}", pause=0.0) from error

    def _check(self, answer: httpx2.Response, at: int, stop: int) -> None:
        """`BadData` where the file is another one now, `Unavailable` where the server does not support ranges, `Broken`
        where the answer is not the range asked for."""
        tag = _tag(answer)
        if self.tag is None:
            self.tag = tag
        elif tag != self.tag:
            raise ChangedMeanwhile(
                f"{self.url} changed since it was opened (entity tag {tag}, was {self.tag}): open it anew"
            )
        if answer.status_code == 200:
            if _length(self.url, answer) != self.size:
                raise Broken(f"an answer of {answer.headers.get('Content-Length')} bytes for a file of {self.size}")
            if at:
                raise Unavailable(
                    f"{self.url}: the server does not support range requests, so rows cannot be read by themselves: "
                    "download the files and stream from their folder"
                )
            return
        told = answer.headers.get("Content-Range", "none")
        found = _CONTENT_RANGE.fullmatch(told)
        if found is None or int(found[1]) != at or int(found[2]) < stop - 1:
            raise Broken(f"bytes {at}-{stop - 1} were asked for and Content-Range is {told!r}")
        if found[3] not in ("*", str(self.size)):
            raise ChangedMeanwhile(
                f"{self.url} is another file than was opened ({found[3]} bytes, not {self.size}): open it anew"
            )
        announced = answer.headers.get("Content-Length")
        if announced is not None and announced != str(int(found[2]) - at + 1):
            raise Broken(f"Content-Length is {announced} and Content-Range is {told!r}")


def _wait(halt: Event, seconds: float) -> None:
    """Wait; `Halted` where `halt` is set meanwhile."""
    if halt.wait(seconds):
        raise Halted


@contextmanager
def _requested(url: str, headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
    """The answer to a request for a range, its body not yet read. `Unavailable` where asking again would not help."""
    import httpx2

    if offline():
        raise Unavailable(f"{url} was not requested: FARSHIFT_OFFLINE is set")
    try:
        client = _client()
    except (ValueError, ImportError, OSError) as error:  # proxies and certificates that the environment names
        raise Unavailable(f"{url} cannot be reached: {first_line(error)}") from error
    try:
        patience = httpx2.Timeout(STALL, connect=min(10.0, STALL))
        wanted = {**headers, "Accept-Encoding": "identity"}
        with client.stream("GET", url, headers=wanted, timeout=patience) as answer:
            if may_pass(answer.status_code):
                pause = retry_after(answer.headers.get("Retry-After"))
                raise Broken(f"the server answered {answer.status_code}", pause)
            if answer.status_code == 416:
                raise BadData(f"{url} is shorter than it was said to be: the server has no {headers['Range']}")
            if answer.status_code not in (200, 206):
                raise Unavailable(f"{url}: the server answered {answer.status_code} {answer.reason_phrase}")
            yield answer
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.TooManyRedirects, UnicodeError) as error:
        raise Unavailable(f"{url} cannot be reached: {first_line(error)}") from error
    except httpx2.ReadTimeout as error:
        raise Broken(f"no byte came for {STALL:g} seconds") from error
    except httpx2.TransportError as error:
        raise Broken(str(error) or type(error).__name__) from error


_clients: dict[int, httpx2.Client] = {}


def _client() -> httpx2.Client:
    """This process's own connections: a forked process must not write into its parent's."""
    import httpx2

    process = os.getpid()
    if process not in _clients:
        _clients.setdefault(process, httpx2.Client(follow_redirects=True, headers={"User-Agent": "farshift"}))
    return _clients[process]


def _length(url: str, answer: httpx2.Response) -> int:
    """The length of the whole file."""
    if answer.status_code == 206:
        found = _CONTENT_RANGE.fullmatch(answer.headers.get("Content-Range", ""))
        told = "" if found is None else found[3]
    else:
        told = answer.headers.get("Content-Length", "")
    if not re.fullmatch("[0-9]{1,18}", told):
        raise Unavailable(
            f"{url}: the server does not say how long the file is: download it and stream from its folder"
        )
    return int(told)


def _tag(answer: httpx2.Response) -> str | None:
    found: str | None = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
    return found
