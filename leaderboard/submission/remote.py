"""Submission over http(s), as in docs/board.md: sent in one request, then its state is polled until the board has
entered it.

Submitting the same bytes twice enters them once, so a request whose response was lost can be repeated.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError, get_first_line
from ...core.files import compute_file_sha256
from ...core.progress import log_message, report_progress
from ...core.retry import call_with_retries
from .access import find_token
from .requests import Answer, Server, make_refusal_error
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
    """A board behind a URL. given: an access token; by default the user's for this board (access.py)."""

    url: str
    given: str = field(default="", repr=False)
    sleep: Callable[[float], object] = field(default=time.sleep, repr=False)

    @property
    def _server(self) -> Server:
        return Server(self.url, find_token(self.url, self.given))

    def submit(self, file: Path | str) -> tuple[list[str], bool]:
        """Submit a file and wait until the board has entered it. Returns its entries, and whether it is new. It is
        validated here first, as by the board. Raises the same errors as a board in a folder."""
        handed = self.hand_over(file)
        return self.entered(handed), handed.new

    def hand_over(self, file: Path | str) -> QueuedSubmission:
        """Validate a submission and send it. It is on the board's disk when this returns."""
        file = Path(file)
        digest = validate_submission(file).digest
        server = self._server
        url = f"{server.api}/submissions"
        answer = call_with_retries(
            lambda: server.ask("POST", url, _make_zip_headers(file, digest), _read_blocks(file)),
            f"{file} could not be submitted to {url}",
            self.sleep,
        )
        state = _parse_state(answer)
        return QueuedSubmission(state["id"], answer.status == 202, state)

    def state(self, id: str) -> dict[str, Any]:
        """The state of a submission: `state` (queued, running, entered, refused or failed), `position` in the queue,
        `attempts`, `entries`, `problems`, `reason`, and the times."""
        server = Server(self.url)  # no token is needed
        url = f"{server.api}/submissions/{id}"
        return _parse_state(
            call_with_retries(lambda: server.ask("GET", url), f"the state of {id[:12]} could not be read from {url}")
        )

    def entered(self, handed: QueuedSubmission) -> list[str]:
        """Wait until the board has entered a submission. Returns its entries."""
        state, first, pause = handed.state, 0, 0.25
        if state["state"] in ("queued", "running"):
            log_message(f"{self.url} received submission {handed.id}; stopping this command does not cancel it")
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
            return [str(entry) for entry in state["entries"]]
        board = self.url.rstrip("/")
        if state["state"] == "refused":
            raise make_refusal_error(board, str(state["reason"]), state["problems"])
        raise FarshiftError(
            f"{board} could not score it ({get_first_line(Exception(state['reason']))}): submit it again later"
        )

    def hand_in(self, window: str, file: Path) -> dict[str, Any]:
        """Submit to a sealed window. Returns the receipt and whether the submission is `new`, as the board sent
        them."""
        server = self._server
        url = f"{server.api}/windows/{window}/answers"
        digest = compute_file_sha256(file)
        return call_with_retries(
            lambda: server.ask("POST", url, _make_zip_headers(file, digest), _read_blocks(file)).json(),
            f"{file} could not be submitted to {url}",
        )


def _make_zip_headers(file: Path, digest: str) -> dict[str, str]:
    return {
        "Content-Type": "application/zip",
        "Content-Length": str(file.stat().st_size),
        "Content-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
    }


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
