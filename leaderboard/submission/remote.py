"""Submission over http(s), as in docs/board.md: sent in one request, then its state is polled until the board has
entered it.

Submitting the same bytes twice enters them once, so a request whose response was lost can be repeated.
"""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from pydantic import TypeAdapter, ValidationError

from ...core.errors import FarshiftError, get_first_line
from ...core.files import compute_file_sha256
from ...core.progress import log_message, report_progress
from ...core.retry import call_with_retries
from ...core.settings import read_settings
from ..storage.http import Answer, send
from ..validation.problem import Problem, format_untrusted, make_refusal
from .validate import validate_submission

_BLOCK = 1 << 20

MAX_ANSWER = 1 << 20
"""Maximum size of a response in bytes."""


@dataclass(frozen=True)
class RemoteBoard:
    """A board behind a URL. given: an access token; by default that in FARSHIFT_TOKEN.

    The state of a submission is a dictionary: `id`, `new` (whether the board did not have it before), `state` (queued,
    running, entered, refused or failed), `position` in the queue, `attempts`, `entries`, `problems`, `reason`, and the
    times."""

    url: str
    given: str = field(default="", repr=False)

    @property
    def _api(self) -> str:
        return f"{self.url.rstrip('/')}/api/v1/submissions"

    def submit(self, file: Path | str) -> tuple[list[str], bool]:
        """Submit a file and wait until the board has entered it. Returns its entries, and whether it is new. It is
        validated here first, as by the board. Raises the same errors as a board in a folder."""
        state = self.send(file)
        return self.wait(state)["entries"], state["new"]

    def send(self, file: Path | str) -> dict[str, Any]:
        """Validate a submission and send it. It is on the board's disk when this returns. Returns its state."""
        return self._post(Path(file), validate_submission(file).digest)

    def submit_answers(self, window: str, file: Path) -> dict[str, Any]:
        """Submit to a sealed window and wait until the board has checked the answers. Returns the file's sha256, when
        the board `received` it, and whether it is `new`."""
        digest = compute_file_sha256(file)
        state = self._post(file, digest, f"?window={quote(window, safe='')}")
        self.wait(state)
        received = format_untrusted(str(state.get("received")), 40)
        return {"submission": digest, "received": received, "new": state["new"]}

    def _post(self, file: Path, digest: str, query: str = "") -> dict[str, Any]:
        url, token = f"{self._api}{query}", find_token(self.url, self.given)
        headers = {
            "Content-Type": "application/zip",
            "Content-Length": str(file.stat().st_size),
            "Content-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
            **({"Authorization": f"Bearer {token}"} if token else {}),
        }
        request = lambda: _request("POST", url, headers, file)  # noqa: E731
        answer = call_with_retries(request, f"{file} could not be submitted to {url}")
        return _parse_state(answer) | {"new": answer.status == 202}

    def state(self, id: str) -> dict[str, Any]:
        """The state of a submission."""
        url = f"{self._api}/{id}"  # no token is needed
        what = f"the state of {id[:12]} could not be read from {url}"
        return _parse_state(call_with_retries(lambda: _request("GET", url, {}), what))

    def wait(self, state: dict[str, Any]) -> dict[str, Any]:
        """Wait until the board has entered a submission. Returns its last state."""
        first, pause, board = 0, 0.25, self.url.rstrip("/")
        if state["state"] in ("queued", "running"):
            when = f"at {format_untrusted(str(state.get('received')), 40)}"
            log_message(f"{board} received submission {state['id']} {when}; stopping this command does not cancel it")
        while state["state"] in ("queued", "running"):
            position = int(state.get("position", 0))
            if first := max(first, position):
                where = f"position {position}" if position else "being scored"
                report_progress("in the queue", first - position, first, where)
            time.sleep(pause)
            pause = min(pause * 1.5, 10.0)
            state = self.state(state["id"])
        if state["state"] == "entered":
            return state
        if state["state"] == "refused":
            raise make_refusal_error(board, state["reason"], state["problems"])
        reason = get_first_line(Exception(state["reason"]))
        raise FarshiftError(f"{board} could not score it ({reason}): submit it again later")


def _read_blocks(file: Path) -> Iterator[bytes]:
    sent, size = 0, file.stat().st_size
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            yield block
            sent += len(block)
            report_progress("sending the file", sent, size)


_STATE: dict[str, Any] = {"id": str, "state": str, "entries": list[str], "problems": list[Any], "reason": str}


def _parse_state(answer: Answer) -> dict[str, Any]:
    state = answer.json()
    for name, kind in _STATE.items():
        try:
            TypeAdapter(kind).validate_python(state.get(name), strict=True)
        except ValidationError as error:
            raise answer.odd(f"{name} is missing or invalid") from error
    return state


def _request(method: str, url: str, headers: Mapping[str, str], file: Path | None = None) -> Answer:
    """Return the successful response of a board's server. Raises `TransientError` if a retry may succeed, `Unavailable`
    if there is no server, and otherwise `FarshiftError` or `BadSubmission` for a rejection."""
    answer = send(method, url, MAX_ANSWER, headers, None if file is None else _read_blocks(file))
    if 200 <= answer.status < 300:
        return answer
    body = answer.json()
    if not isinstance(body.get("error"), str):
        raise answer.odd("error is missing")
    if answer.status == 401 and "Authorization" not in headers:
        raise FarshiftError(f"{url} refused it: {answer.error}; give it with --token or as FARSHIFT_TOKEN")
    raise make_refusal_error(url, body["error"], body.get("problems"))


def make_refusal_error(url: str, error: str, problems: Any) -> FarshiftError:
    """The error for a board's rejection, with the validator's problems if it lists them."""
    try:
        listed = TypeAdapter(list[Problem]).validate_python(problems or [])
    except ValidationError:
        listed = []
    return make_refusal(url, listed) if listed else FarshiftError(f"{url} refused it: {format_untrusted(error, 400)}")


_SENDABLE = re.compile(r"[!-~]{1,500}")


def find_token(url: str, given: str = "") -> str:
    """The token for the board behind a URL; empty if the user has none. Raises `FarshiftError` if it would be sent
    unencrypted, or has invalid characters. No message contains the token."""
    token = given or read_settings().token
    if token and not _SENDABLE.fullmatch(token):
        raise FarshiftError("the token has invalid characters: copy it as the board printed it (fs_..)")
    if token and not _is_private(url):
        raise FarshiftError(f"{url}: a token is only sent over https, or to this machine: use https://")
    return token


def _is_private(url: str) -> bool:
    """Whether the connection to a URL is private: encrypted, or to this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        is_local = ip_address(host).is_loopback
    except ValueError:
        is_local = host == "localhost"
    return parts.scheme == "https" or is_local
