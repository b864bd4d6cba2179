"""Requests to a board's server: responses of limited size, no redirects, and rejections as errors of one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...core.errors import FarshiftError, Unavailable, get_first_line
from ...core.files import is_offline
from ...core.retry import TransientError, is_retryable, parse_retry_after
from ...loaders.remote.http import parse_json_object
from ..validation.problem import Problem, format_untrusted, make_refusal
from .access import HOW_GIVEN

if TYPE_CHECKING:
    import httpx2

API = "api/v1"
MAX_ANSWER = 1 << 20
"""Maximum size of a response in bytes."""

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
            return parse_json_object(self.content)
        except ValueError as error:
            raise self.odd(str(error)) from error

    def odd(self, why: str) -> FarshiftError:
        """The error for a response that a board of Farshift does not give."""
        return FarshiftError(f"{self.url} answered {self.status}, but is not a Farshift board: {why}")


@dataclass(frozen=True)
class Server:
    """A board's server. url: the board's URL; token: the access token, or empty."""

    url: str
    token: str = field(default="", repr=False)

    @property
    def api(self) -> str:
        return f"{self.url.rstrip('/')}/{API}"

    def ask(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        content: Iterable[bytes] | None = None,
    ) -> Answer:
        """Send a request. Raises `TransientError` if a retry may succeed, `Unavailable` if there is no server, and
        otherwise `FarshiftError` or `BadSubmission` for a rejection."""
        import httpx2

        if is_offline():
            raise Unavailable(f"{self.url} was not contacted: FARSHIFT_OFFLINE is set")
        request_headers = {"User-Agent": "farshift", "Accept-Encoding": "identity", **(headers or {})}
        if self.token:
            request_headers["Authorization"] = f"Bearer {self.token}"
        try:
            with (
                httpx2.Client(timeout=httpx2.Timeout(SILENCE, connect=CONNECT), trust_env=True) as client,
                client.stream(method, url, content=content, headers=request_headers) as answer,
            ):
                return _check_answer(answer, url, "" if self.token else f"; {HOW_GIVEN}")
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise Unavailable(f"{url} cannot be reached: {get_first_line(error)}") from error
        except httpx2.TransportError as error:
            raise TransientError(str(error) or type(error).__name__) from error


def _check_answer(answer: httpx2.Response, url: str, without_token: str) -> Answer:
    """Return a successful response, or raise the matching error. without_token: the advice if a token is required but
    none was sent."""
    if is_retryable(answer.status_code):
        raise TransientError(_explain_retry(answer, url), parse_retry_after(answer.headers.get("Retry-After")))
    if answer.is_redirect:
        where = answer.headers.get("Location", "elsewhere")
        raise FarshiftError(f"{url} has moved to {where}: use this URL (redirects are not followed)")
    board_answer = Answer(url, answer.status_code, answer.headers, _read_body(answer, url))
    if answer.is_success:
        return board_answer
    body = board_answer.json()
    if not isinstance(body.get("error"), str):
        raise board_answer.odd("error is missing")
    if board_answer.status == 401:
        raise FarshiftError(f"{url} refused it: {format_untrusted(body['error'], 400)}{without_token}")
    raise make_refusal_error(url, body["error"], body.get("problems"))


def _explain_retry(answer: httpx2.Response, url: str) -> str:
    """Why a request has to be repeated; for an exceeded quota in the server's words, which say more than its status."""
    plain = f"the server answered {answer.status_code}"
    try:
        message = parse_json_object(_read_body(answer, url)).get("error")
    except (ValueError, FarshiftError):
        return plain
    return (
        f"{plain}: {format_untrusted(message, 200)}"
        if isinstance(message, str) and answer.status_code == 429
        else plain
    )


def _read_body(answer: httpx2.Response, url: str) -> bytes:
    got = bytearray()
    for piece in answer.iter_bytes():
        got += piece
        if len(got) > MAX_ANSWER:
            raise FarshiftError(f"{url} answered with over {MAX_ANSWER} bytes: it is not a Farshift board")
    return bytes(got)


def make_refusal_error(url: str, error: str, problems: Any) -> FarshiftError:
    """The error for a board's rejection, with the validator's problems if it lists them."""
    if isinstance(problems, list) and problems and all(_is_problem(item) for item in problems):
        return make_refusal(url, [Problem(**item) for item in problems])
    return FarshiftError(f"{url} refused it: {format_untrusted(error, 400)}")


def _is_problem(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and {"name", "file", "what", "remedy"} <= item.keys() <= Problem.__dataclass_fields__.keys()
        and all(isinstance(value, str) for value in item.values())
    )
