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

from ...core.errors import FarshiftError, first_line
from ...core.files import file_sha256
from ...core.progress import advance, say
from ...core.retry import persist
from .access import token_for
from .requests import Answer, Server, refused
from .validate import check

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Handed:
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
        return Server(self.url, token_for(self.url, self.given))

    def submit(self, file: Path | str) -> tuple[list[str], bool]:
        """The entries of a submission, once the board has entered it, and whether it is new. It is checked here first,
        by the same validator. Raises as a board in a folder does where it is refused."""
        handed = self.hand_over(file)
        return self.entered(handed), handed.new

    def hand_over(self, file: Path | str) -> Handed:
        """Check a submission and send it. It is on the board's disk when this returns."""
        file = Path(file)
        digest = check(file).digest
        server = self._server
        place = f"{server.api}/submissions"
        answer = persist(
            lambda: server.ask("POST", place, _zip(file, digest), _blocks(file)),
            f"{file} could not be handed in at {place}",
            self.sleep,
        )
        said = _state(answer)
        return Handed(said["id"], answer.status == 202, said)

    def state(self, id: str) -> dict[str, Any]:
        """The state of a submission: `state` (queued, running, entered, refused or failed), `position` in the queue,
        `attempts`, `entries`, `problems`, `reason`, and the times."""
        server = Server(self.url)  # its id is all that is needed
        place = f"{server.api}/submissions/{id}"
        return _state(
            persist(lambda: server.ask("GET", place), f"the state of {id[:12]} could not be asked at {place}")
        )

    def entered(self, handed: Handed) -> list[str]:
        """The entries of what was handed over, once the board has entered it."""
        said, first, pause = handed.state, 0, 0.25
        if said["state"] in ("queued", "running"):
            say(f"{self.url} has it, number {handed.id}; it is scored also if this command ends")
        while said["state"] in ("queued", "running"):
            place = int(said.get("position", 0))
            first = max(first, place)
            if first:
                advance("in the queue", first - place, first, f"position {place}" if place else "being scored")
            self.sleep(pause)
            pause = min(pause * 1.5, 10.0)
            said = self.state(handed.id)
        if said["state"] == "entered":
            return [str(entry) for entry in said["entries"]]
        board = self.url.rstrip("/")
        if said["state"] == "refused":
            raise refused(board, str(said["reason"]), said["problems"])
        raise FarshiftError(
            f"{board} could not score it ({first_line(Exception(said['reason']))}): submit it again later"
        )

    def hand_in(self, window: str, file: Path) -> dict[str, Any]:
        """Hand answers to a sealed window in; the receipt, and whether they are `new`, as the board says it."""
        server = self._server
        place = f"{server.api}/windows/{window}/answers"
        digest = file_sha256(file)
        return persist(
            lambda: server.ask("POST", place, _zip(file, digest), _blocks(file)).json(),
            f"{file} could not be handed in at {place}",
        )


def _zip(file: Path, digest: str) -> dict[str, str]:
    return {
        "Content-Type": "application/zip",
        "Content-Length": str(file.stat().st_size),
        "Content-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
    }


def _blocks(file: Path) -> Iterator[bytes]:
    sent, size = 0, file.stat().st_size
    with file.open("rb") as content:
        while block := content.read(_BLOCK):
            yield block
            sent += len(block)
            advance("handing in", sent, size)


_STATE = {"id": str, "state": str, "entries": list, "problems": list, "reason": str}


def _state(answer: Answer) -> dict[str, Any]:
    said = answer.json()
    for name, kind in _STATE.items():
        if not isinstance(said.get(name), kind):
            raise answer.odd(f"it names no {name}")
    if not all(isinstance(entry, str) for entry in said["entries"]):
        raise answer.odd("it names no entries")
    return said
