"""Submission over http(s), as in docs/board.md: sent in one request, then its state is polled until the board has
entered it.

Submitting the same bytes twice enters them once, so a request whose response was lost can be repeated.
"""

from __future__ import annotations

import re
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from ...core.errors import FarshiftError, get_first_line
from ...core.files import compute_file_sha256
from ...core.progress import log_message, report_progress
from ...core.retry import call_with_retries
from ...core.settings import read_settings
from ..storage.http import Answer, send
from ..validation.problem import Problem, format_untrusted, make_refusal
from .validate import validate_submission

_BLOCK = 1 << 20


@dataclass(frozen=True)
class QueuedSubmission:
    """A submission that a board has received. id: identifies it in requests for its state; new: whether the board did
    not have it before; state: as from `RemoteBoard.state`."""

    id: str
    new: bool
    state: dict[str, Any]


@dataclass(frozen=True)
class RemoteBoard:
    """A board behind a URL. given: an access token; by default that in FARSHIFT_TOKEN."""

    url: str
    given: str = field(default="", repr=False)
    sleep: Callable[[float], object] = field(default=time.sleep, repr=False)

    def _post(self, file: Path, digest: str, window: str = "") -> Answer:
        url, token = f"{self._api}/submissions", find_token(self.url, self.given)
        url += f"?window={quote(window, safe='')}" if window else ""
        headers = {
            "Content-Type": "application/zip",
            "Content-Length": str(file.stat().st_size),
            "Content-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
        }
        return call_with_retries(
            lambda: _request("POST", url, token, headers, file),
            f"{file} could not be submitted to {url}",
            self.sleep,
        )

    @property
    def _api(self) -> str:
        return f"{self.url.rstrip('/')}/api/v1"

    def submit(self, file: Path | str) -> tuple[list[str], bool]:
        """Submit a file and wait until the board has entered it. Returns its entries, and whether it is new. It is
        validated here first, as by the board. Raises the same errors as a board in a folder."""
        handed = self.hand_over(file)
        return self.entered(handed), handed.new

    def hand_over(self, file: Path | str) -> QueuedSubmission:
        """Validate a submission and send it. It is on the board's disk when this returns."""
        file = Path(file)
        digest = validate_submission(file).digest
        answer = self._post(file, digest)
        state = _parse_state(answer)
        return QueuedSubmission(state["id"], answer.status == 202, state)

    def state(self, id: str) -> dict[str, Any]:
        """The state of a submission: `state` (queued, running, entered, refused or failed), `position` in the queue,
        `attempts`, `entries`, `problems`, `reason`, and the times."""
        url = f"{self._api}/submissions/{id}"  # no token is needed
        return _parse_state(
            call_with_retries(lambda: _request("GET", url), f"the state of {id[:12]} could not be read from {url}")
        )

    def entered(self, handed: QueuedSubmission) -> list[str]:
        """Wait until the board has entered a submission. Returns its entries."""
        return [str(entry) for entry in self._wait(handed)["entries"]]

    def _wait(self, handed: QueuedSubmission) -> dict[str, Any]:
        """Wait until the board has entered a submission. Returns its state."""
        state, first, pause = handed.state, 0, 0.25
        if state["state"] in ("queued", "running"):
            when = f"at {format_untrusted(str(state.get('received')), 40)}"
            log_message(f"{self.url} received submission {handed.id} {when}; stopping this command does not cancel it")
        while state["state"] in ("queued", "running"):
            position = int(state.get("position", 0))
            first = max(first, position)
            if first:
                report_progress(
                    "in the queue", first - position, first, f"position {position}" if position else "being scored"
                )
            self.sleep(pause)
            pause = min(pause * 1.5, 10.0)
            state = self.state(handed.id)
        if state["state"] == "entered":
            return state
        board = self.url.rstrip("/")
        if state["state"] == "refused":
            raise make_refusal_error(board, str(state["reason"]), state["problems"])
        raise FarshiftError(
            f"{board} could not score it ({get_first_line(Exception(state['reason']))}): submit it again later"
        )

    def submit_answers(self, window: str, file: Path) -> dict[str, Any]:
        """Submit to a sealed window and wait until the board has checked the answers. Returns the file's sha256, when
        the board `received` it, and whether it is `new`."""
        digest = compute_file_sha256(file)
        answer = self._post(file, digest, window)
        state = _parse_state(answer)
        self._wait(QueuedSubmission(state["id"], answer.status == 202, state))
        received = format_untrusted(str(state.get("received")), 40)
        return {"submission": digest, "received": received, "new": answer.status == 202}


def _read_blocks(file: Path) -> Iterator[bytes]:
    sent, size = 0, file.stat().st_size
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            yield block
            sent += len(block)
            report_progress("sending the file", sent, size)


_STATE = {"id": str, "state": str, "entries": list, "problems": list, "reason": str}


def _parse_state(answer: Answer) -> dict[str, Any]:
    state = answer.json()
    for name, kind in _STATE.items():
        if not isinstance(state.get(name), kind):
            raise answer.odd(f"{name} is missing or invalid")
    if not all(isinstance(entry, str) for entry in state["entries"]):
        raise answer.odd("entries is invalid")
    return state


MAX_ANSWER = 1 << 20
"""Maximum size of a response in bytes."""


def _request(
    method: str, url: str, token: str = "", headers: Mapping[str, str] | None = None, file: Path | None = None
) -> Answer:
    """Return the successful response of a board's server. Raises `TransientError` if a retry may succeed, `Unavailable`
    if there is no server, and otherwise `FarshiftError` or `BadSubmission` for a rejection."""
    sent = {**(headers or {}), **({"Authorization": f"Bearer {token}"} if token else {})}
    answer = send(method, url, MAX_ANSWER, sent, None if file is None else _read_blocks(file))
    if 200 <= answer.status < 300:
        return answer
    body = answer.json()
    if not isinstance(body.get("error"), str):
        raise answer.odd("error is missing")
    if answer.status == 401:
        advice = "" if token else f"; {HOW_GIVEN}"
        raise FarshiftError(f"{url} refused it: {format_untrusted(body['error'], 400)}{advice}")
    raise make_refusal_error(url, body["error"], body.get("problems"))


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


HOW_GIVEN = "give it with --token or as FARSHIFT_TOKEN"
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
