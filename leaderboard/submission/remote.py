"""Handing a submission in over http(s), to whatever keeps the contract of docs/board.md.

`POST <url>/api/submissions`, the zip as the body. Submitting the same bytes twice enters them once, so a request whose
answer got lost is safe to repeat.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ...core.errors import FarshiftError, Unavailable, first_line
from ...core.files import offline
from ...core.progress import advance
from ...core.retry import Broken, may_pass, persist, retry_after
from ...loaders.remote.received import json_object
from ..validation.problem import Problem, refusal, shown
from .validate import check

if TYPE_CHECKING:
    import httpx2

PATH = "api/submissions"
MAX_ANSWER = 1 << 20
"""Bytes of an answer that are read."""

CONNECT, SILENCE = 10.0, 600.0
"""Seconds for a connection, and without a byte: a board scores before it answers."""

_BLOCK = 1 << 20


@dataclass(frozen=True)
class RemoteBoard:
    """A board behind a URL."""

    url: str

    def submit(self, file: Path | str) -> tuple[list[str], bool]:
        """The entries of a submission, and whether they are new. It is checked here first, by the same validator."""
        file = Path(file)
        digest = check(file).digest
        if offline():
            raise Unavailable(f"{self.url} was not contacted: FARSHIFT_OFFLINE is set")
        target = f"{self.url.rstrip('/')}/{PATH}"
        return persist(lambda: self._post(target, file, digest), f"{file} could not be handed in at {target}")

    def _post(self, target: str, file: Path, digest: str) -> tuple[list[str], bool]:
        import httpx2

        size = file.stat().st_size
        headers = {
            "Content-Type": "application/zip",
            "Content-Length": str(size),
            "Content-Digest": f"sha-256=:{b64encode(bytes.fromhex(digest)).decode()}:",
            "User-Agent": "farshift",
        }
        patience = httpx2.Timeout(SILENCE, connect=CONNECT)
        try:
            with (
                file.open("rb") as content,
                httpx2.Client(timeout=patience) as client,
                client.stream("POST", target, content=_blocks(content, size), headers=headers) as answer,
            ):
                return _understood(answer, target, _read(answer, target))
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, UnicodeError) as error:
            raise Unavailable(f"{target} cannot be reached: {first_line(error)}") from error
        except httpx2.TransportError as error:
            raise Broken(str(error) or type(error).__name__) from error


def _blocks(content: BinaryIO, size: int) -> Iterator[bytes]:
    sent = 0
    while block := content.read(_BLOCK):
        yield block
        sent += len(block)
        advance("handing in", sent, size)


def _read(answer: httpx2.Response, target: str) -> bytes:
    got = bytearray()
    for piece in answer.iter_bytes():
        got += piece
        if len(got) > MAX_ANSWER:
            raise FarshiftError(f"{target} answered with over {MAX_ANSWER} bytes: it is not a board of Farshift's")
    return bytes(got)


def _understood(answer: httpx2.Response, target: str, content: bytes) -> tuple[list[str], bool]:
    """The entries, or the error that the answer is."""
    if may_pass(answer.status_code):
        raise Broken(f"the server answered {answer.status_code}", retry_after(answer.headers.get("Retry-After")))
    if answer.is_redirect:
        where = answer.headers.get("Location", "elsewhere")
        raise FarshiftError(f"{target} has moved to {where}: hand it in there (submissions follow no redirects)")
    try:
        said = json_object(content)
    except ValueError as error:
        raise _odd(answer, target, str(error)) from error
    if answer.status_code in (200, 201):
        entries = said.get("entries")
        if isinstance(entries, list) and all(isinstance(entry, str) for entry in entries):
            return entries, said.get("new") is True
        raise _odd(answer, target, "it names no entries")
    if isinstance(said.get("error"), str):
        raise _refusal(answer, target, said)
    raise _odd(answer, target, "it names no error")


def _refusal(answer: httpx2.Response, target: str, said: dict[str, Any]) -> FarshiftError:
    listed = said.get("problems")
    if isinstance(listed, list) and listed and all(_is_problem(item) for item in listed):
        return refusal(target, [Problem(**item) for item in listed])
    return FarshiftError(f"{target} refused it: {shown(said['error'], 400)}")


def _is_problem(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and {"name", "file", "what", "remedy"} <= item.keys() <= Problem.__dataclass_fields__.keys()
        and all(isinstance(value, str) for value in item.values())
    )


def _odd(answer: httpx2.Response, target: str, why: str) -> FarshiftError:
    return FarshiftError(f"{target} answered {answer.status_code}, and not as a board of Farshift's does: {why}")
