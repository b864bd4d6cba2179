"""HTTP requests to a board: responses of limited size, no redirects, and failures as errors of one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...core.documents import parse_json
from ...core.errors import BadData, FarshiftError, Unavailable, get_first_line
from ...core.files import is_offline
from ...core.retry import TransientError, call_with_retries, is_retryable, parse_retry_after
from ...loaders.files.http import open_client
from ..validation.problem import format_untrusted

CONNECT, SILENCE = 10.0, 120.0
"""Timeouts in seconds: for connecting, and between bytes."""


@dataclass(frozen=True)
class Answer:
    """A server's response: its status, headers and body."""

    url: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    def json(self) -> dict[str, Any]:
        """The JSON object in the body. Raises `FarshiftError` if there is none."""
        try:
            content: dict[str, Any] = parse_json(self.content, dict)
            return content
        except ValueError as error:
            raise self.odd("its answer is not a JSON object") from error

    def odd(self, why: str) -> FarshiftError:
        """The error for a response that a board of Farshift does not give."""
        return FarshiftError(f"{self.url} answered {self.status}, but is not a Farshift board: {why}")

    @property
    def error(self) -> str:
        """The message of an error, on one line; "not found" if it has none."""
        try:
            return format_untrusted(parse_json(self.content, dict).get("error", ""), 200)
        except ValueError:
            return "not found"


def fetch(url: str, limit: int) -> Answer:
    """Return the response of at most `limit` bytes to GET, with any status that repeating the request does not change.
    Raises `Unavailable` if the server does not respond."""
    return call_with_retries(lambda: send("GET", url, limit), f"{url} could not be fetched")


def send(
    method: str,
    url: str,
    limit: int,
    headers: Mapping[str, str] | None = None,
    content: Iterable[bytes] | None = None,
) -> Answer:
    """Send a request once. Raises `TransientError` if a retry may succeed, `Unavailable` if there is no server,
    `BadData` above `limit` bytes, and `FarshiftError` for a redirect."""
    import httpx2

    if is_offline():
        raise Unavailable(f"{url} was not contacted: FARSHIFT_OFFLINE is set")
    options: dict[str, Any] = {"timeout": httpx2.Timeout(SILENCE, connect=CONNECT), "follow_redirects": False}
    try:
        with open_client(url).stream(method, url, content=content, headers=headers, **options) as response:
            body = bytearray()
            for piece in response.iter_bytes():
                body += piece
                if len(body) > limit:
                    raise BadData(f"{url} answered with over {limit} bytes, more than are accepted")
            answer = Answer(url, response.status_code, response.headers, bytes(body))
    except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
        raise Unavailable(f"{url} cannot be reached: {get_first_line(error)}") from error
    except httpx2.TransportError as error:
        raise TransientError(str(error) or type(error).__name__) from error
    if is_retryable(answer.status):
        # An exceeded quota is explained in the server's words, which say more than its status.
        why = f": {answer.error}" if answer.status == 429 else ""
        pause = parse_retry_after(answer.headers.get("Retry-After"))
        raise TransientError(f"the server answered {answer.status}{why}", pause)
    if "Location" in answer.headers and 300 <= answer.status < 400:
        raise FarshiftError(
            f"{url} has moved to {answer.headers['Location']}: use this URL (redirects are not followed)"
        )
    return answer


def is_url(location: str) -> bool:
    """Whether a location is an http(s) URL rather than a folder."""
    scheme, separator, _ = location.partition("://")
    if separator and scheme not in ("http", "https"):
        raise FarshiftError(f"{location}: a board is a folder, or a URL with http:// or https://")
    return bool(separator)
