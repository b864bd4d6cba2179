"""Requests for files on web servers: for mirrors and streams."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...core.errors import BadData, Unavailable, get_first_line
from ...core.files import is_offline
from ...core.retry import TransientError, is_retryable, parse_retry_after

if TYPE_CHECKING:
    import httpx2

STALL = 30.0
"""The timeout of a connection in seconds without a byte."""

_clients: dict[int, httpx2.Client] = {}


@contextmanager
def request_file(url: str, headers: Mapping[str, str]) -> Iterator[httpx2.Response]:
    """Request a file or a range of it; the body of the response is not read yet. Raises `TransientError` if another try
    may succeed, `Unavailable` if it would not help, `BadData` if the file does not have the range."""
    import httpx2

    if is_offline():
        raise Unavailable(f"{url} was not requested: FARSHIFT_OFFLINE is set")
    client = open_client(url)
    try:
        patience = httpx2.Timeout(STALL, connect=min(10.0, STALL))
        headers = {**headers, "Accept-Encoding": "identity"}
        with client.stream("GET", url, headers=headers, timeout=patience) as answer:
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


def open_client(url: str) -> httpx2.Client:
    """The connections of this process, for a request to `url`: a forked process must not use its parent's. Raises
    `Unavailable` for invalid proxies or certificates in the environment."""
    import httpx2

    process = os.getpid()
    if process not in _clients:
        try:
            opened = httpx2.Client(follow_redirects=True, headers={"User-Agent": "farshift"})
        except (ValueError, ImportError, OSError) as error:
            raise Unavailable(f"{url} cannot be reached: {get_first_line(error)}") from error
        _clients.setdefault(process, opened)
    return _clients[process]


def read_tag(answer: httpx2.Response) -> str | None:
    """Return a file's entity tag, or else its modification time; None if the server tells neither."""
    tag: str | None = answer.headers.get("ETag") or answer.headers.get("Last-Modified")
    return tag
