"""Write the body of a request to a file while it arrives, with limits on its size and transfer rate."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from ....core.durable import ADVICE
from ....core.files import translate_os_errors
from ..http_problem import HTTPProblem
from ..settings import ServerSettings

_BLOCK = 1 << 18
_DIGEST = re.compile(r"sha-256=:([A-Za-z0-9+/]{43}=):")


class Body:
    """A received body. received: number of bytes in the file; whole: whether the body was complete; digest: sha256 of
    the received bytes."""

    def __init__(self) -> None:
        self.received, self.is_complete = 0, False
        self.sha256 = hashlib.sha256()

    @property
    def digest(self) -> str:
        return self.sha256.hexdigest()


async def receive_body(stream: AsyncIterator[bytes], path: Path, most: int, settings: ServerSettings) -> Body:
    """Write a body into an empty file, and flush it to the disk. Raises `HTTPProblem`: 413 above `most` bytes, before
    they are written; 408 after too long a pause, or below the lowest permitted rate. If the client disconnects, the
    body is not whole."""
    body, began = Body(), time.monotonic()
    with translate_os_errors(path, ADVICE), path.open("r+b") as file:
        pieces = aiter(stream)
        waiting = bytearray()
        try:
            while True:
                try:
                    piece = await asyncio.wait_for(anext(pieces), settings.silence_seconds)
                except StopAsyncIteration:
                    body.is_complete = True
                    break
                except TimeoutError:
                    raise HTTPProblem.make(408, f"no data received for {settings.silence_seconds:g} s") from None
                if body.received + len(waiting) + len(piece) > most:
                    raise HTTPProblem.make(413, f"the body has more than {most} bytes: pack fewer runs into one file")
                waiting += piece
                took = time.monotonic() - began
                if took > settings.silence_seconds and (
                    body.received + len(waiting) < took * settings.slowest_bytes_a_second
                ):
                    raise HTTPProblem.make(
                        408, f"the body arrived at less than {settings.slowest_bytes_a_second} bytes per second"
                    )
                if len(waiting) >= _BLOCK:
                    await run_in_threadpool(_write_block, file, bytes(waiting), body)
                    waiting.clear()
        except ClientDisconnect:
            pass
        finally:
            await run_in_threadpool(_write_and_flush, file, bytes(waiting), body)
    return body


def _write_block(file: BinaryIO, content: bytes, body: Body) -> None:
    file.write(content)
    body.sha256.update(content)
    body.received += len(content)


def _write_and_flush(file: BinaryIO, content: bytes, body: Body) -> None:
    _write_block(file, content, body)
    file.flush()
    os.fsync(file.fileno())


def parse_digest_header(header: str) -> str:
    """Parse the sha256 in a Content-Digest header (RFC 9530) to hexadecimal; empty without the header. Raises
    `HTTPProblem` (400) for any other content."""
    if not header:
        return ""
    match = _DIGEST.fullmatch(header.strip())
    try:
        return base64.b64decode(match[1], validate=True).hex() if match is not None else _raise_unreadable()
    except binascii.Error:
        return _raise_unreadable()


def _raise_unreadable() -> str:
    raise HTTPProblem.make(400, "Content-Digest must have the form sha-256=:<base64>:")
