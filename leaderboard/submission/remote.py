"""Handing a submission in over http(s), as docs/board.md says: sent, resumed where it was cut off, then asked for until
the board has entered it.

Submitting the same bytes twice enters them once, so a request whose answer got lost is safe to repeat.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

from ...core.errors import FarshiftError, first_line
from ...core.files import file_sha256, user_home, write_atomically
from ...core.progress import advance, say
from ...core.retry import Broken, persist
from .access import token_for
from .requests import Answer, Server, refused
from .validate import check

RESUMABLE = 8 << 20
"""Bytes from which a file is sent as an upload that can be resumed, in any later command too."""

_BLOCK = 1 << 20
_TUS = {"Tus-Resumable": "1.0.0"}


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
        send = self._posted if file.stat().st_size < RESUMABLE else self._uploaded
        return send(server, file, digest)

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

    def _posted(self, server: Server, file: Path, digest: str) -> Handed:
        place = f"{server.api}/submissions"
        answer = persist(
            lambda: server.ask("POST", place, _zip(file, digest), _blocks(file)),
            f"{file} could not be handed in at {place}",
            self.sleep,
        )
        return _handed(answer, answer.status == 202)

    def _uploaded(self, server: Server, file: Path, digest: str) -> Handed:
        """Send a file in as many requests as it takes, from where an earlier command was cut off."""
        kept = user_home() / "uploads" / sha256(f"{server.api} {digest}".encode()).hexdigest()[:32]
        failed = f"{file} could not be handed in at {server.api}/uploads"
        found = self._standing(server, kept)
        while found is None or "Farshift-Submission" not in found.headers:
            if found is None:
                begun = persist(lambda: self._begun(server, file, digest), failed, self.sleep)
                write_atomically(kept, begun.location.encode())
            found = persist(lambda: self._more(server, kept.read_text(), file), failed, self.sleep)
        kept.unlink(missing_ok=True)
        id = found.headers["Farshift-Submission"]
        return Handed(id, True, self.state(id))

    def _begun(self, server: Server, file: Path, digest: str) -> Answer:
        meta = f"sha256 {b64encode(digest.encode()).decode()}"
        headers = {**_TUS, "Upload-Length": str(file.stat().st_size), "Upload-Metadata": meta, "Content-Length": "0"}
        return server.ask("POST", f"{server.api}/uploads", headers)

    def _standing(self, server: Server, kept: Path) -> Answer | None:
        """The upload that an earlier command began; None where there is none, or the server has forgotten it."""
        place = kept.read_text() if kept.is_file() else ""
        if not place.startswith(f"{server.api}/uploads/"):
            return None
        try:
            return persist(lambda: server.ask("HEAD", place, _TUS), f"{place} could not be asked", self.sleep)
        except FarshiftError:
            return None

    def _more(self, server: Server, place: str, file: Path) -> Answer:
        """Send what is missing of an upload. One that breaks off after it got on is no failed try."""
        there = server.ask("HEAD", place, _TUS)
        offset = _offset(there)
        size = file.stat().st_size
        headers = {
            **_TUS,
            "Content-Type": "application/offset+octet-stream",
            "Content-Length": str(size - offset),
            "Upload-Offset": str(offset),
        }
        try:
            return server.ask("PATCH", place, headers, _blocks(file, offset))
        except Broken:
            now = server.ask("HEAD", place, _TUS)
            if _offset(now) > offset or "Farshift-Submission" in now.headers:
                return now
            raise


def _zip(file: Path, digest: str) -> dict[str, str]:
    return {
        "Content-Type": "application/zip",
        "Content-Length": str(file.stat().st_size),
        "Content-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
    }


def _blocks(file: Path, start: int = 0) -> Iterator[bytes]:
    sent, size = start, file.stat().st_size
    with file.open("rb") as content:
        content.seek(start)
        while block := content.read(_BLOCK):
            yield block
            sent += len(block)
            advance("handing in", sent, size)


def _offset(answer: Answer) -> int:
    stated = answer.headers.get("Upload-Offset", "")
    if not stated.isdigit():
        raise answer.odd("it names no offset")
    return int(stated)


def _handed(answer: Answer, new: bool) -> Handed:
    said = _state(answer)
    return Handed(said["id"], new, said)


_STATE = {"id": str, "state": str, "entries": list, "problems": list, "reason": str}


def _state(answer: Answer) -> dict[str, Any]:
    said = answer.json()
    for name, kind in _STATE.items():
        if not isinstance(said.get(name), kind):
            raise answer.odd(f"it names no {name}")
    if not all(isinstance(entry, str) for entry in said["entries"]):
        raise answer.odd("it names no entries")
    return said
