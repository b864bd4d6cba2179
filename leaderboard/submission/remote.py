"""Handing a submission in over http(s), as docs/board.md says: sent in one request, then asked for until the board has
entered it.

Submitting the same bytes twice enters them once, so a request whose answer got lost is safe to repeat.
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
    """What a board was handed. id: how its state is asked for; new: whether the board had it not yet; state: as
    `RemoteBoard.state` gives it."""

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
        """The entries of a submission, once the board has entered it, and whether it is new. It is checked here first,
        by the same validator. Raises as a board in a folder does where it is refused."""
        handed = self.hand_over(file)
        return self.entered(handed), handed.new

    def hand_over(self, file: Path | str) -> QueuedSubmission:
        """Check a submission and send it. It is on the board's disk when this returns."""
        file = Path(file)
        digest = validate_submission(file).digest
        server = self._server
        url = f"{server.api}/submissions"
        answer = call_with_retries(
            lambda: server.ask("POST", url, _make_zip_headers(file, digest), _read_blocks(file)),
            f"{file} could not be handed in at {url}",
            self.sleep,
        )
        state = _parse_state(answer)
        return QueuedSubmission(state["id"], answer.status == 202, state)

    def state(self, id: str) -> dict[str, Any]:
        """The state of a submission: `state` (queued, running, entered, refused or failed), `position` in the queue,
        `attempts`, `entries`, `problems`, `reason`, and the times."""
        server = Server(self.url)  # its id is all that is needed
        url = f"{server.api}/submissions/{id}"
        return _parse_state(
            call_with_retries(lambda: server.ask("GET", url), f"the state of {id[:12]} could not be asked at {url}")
        )

    def entered(self, handed: QueuedSubmission) -> list[str]:
        """The entries of what was handed over, once the board has entered it."""
        state, first, pause = handed.state, 0, 0.25
        if state["state"] in ("queued", "running"):
            log_message(f"{self.url} has it, number {handed.id}; it is scored also if this command ends")
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
        """Hand answers to a sealed window in; the receipt, and whether they are `new`, as the board says it."""
        server = self._server
        url = f"{server.api}/windows/{window}/answers"
        digest = compute_file_sha256(file)
        return call_with_retries(
            lambda: server.ask("POST", url, _make_zip_headers(file, digest), _read_blocks(file)).json(),
            f"{file} could not be handed in at {url}",
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
            report_progress("handing in", sent, size)


_STATE = {"id": str, "state": str, "entries": list, "problems": list, "reason": str}


def _parse_state(answer: Answer) -> dict[str, Any]:
    state = answer.json()
    for name, kind in _STATE.items():
        if not isinstance(state.get(name), kind):
            raise answer.odd(f"it names no {name}")
    if not all(isinstance(entry, str) for entry in state["entries"]):
        raise answer.odd("it names no entries")
    return state
