"""Sending a file over HTTP, whole or in part, well or with a fault. Ranges and validators: RFC 9110."""

from __future__ import annotations

import os
import re
import socket
import struct
from contextlib import suppress
from typing import Any

from hub_faults import Cut, Fault, Flip, IgnoreRange, OtherRange, Stall, Trickle, WrongLength

_BLOCK = 1 << 20


def send(handler: Any, content: bytes, headers: dict[str, str], fault: Fault | None) -> None:
    """Answer a request with the content, or with the range of it that was asked for."""
    if isinstance(fault, Flip) and fault.at < len(content):
        content = content[: fault.at] + bytes([content[fault.at] ^ 1]) + content[fault.at + 1 :]
    expected = None if isinstance(fault, IgnoreRange) else _range(handler, len(content), headers.get("ETag"))
    if expected == (0, 0):
        handler.head(416, {"Content-Range": f"bytes */{len(content)}", "Content-Length": "0"})
        return
    start, end = expected or (0, len(content))
    if isinstance(fault, OtherRange) and expected:
        start = min(start + fault.later, end - 1)
    output = {"Content-Range": f"bytes {start}-{end - 1}/{len(content)}"} if expected else {}
    body = content[start:end]
    length = len(body) + (fault.by if isinstance(fault, WrongLength) else 0)
    handler.head(206 if expected else 200, headers | output | {"Content-Length": str(max(0, length))})
    if handler.command != "HEAD":
        _write(handler, body[: max(0, length)], fault)


def _range(handler: Any, size: int, validator: str | None) -> tuple[int, int] | None:
    """The bytes asked for, from and up to; (0, 0) where there are none, None where the whole is wanted."""
    requested = handler.headers.get("Range")
    condition = handler.headers.get("If-Range")
    if requested is None or (condition is not None and condition != validator):
        return None
    result = re.fullmatch(r"bytes=(\d*)-(\d*)", requested)
    if not result or not any(result.groups()):
        return None
    first, last = result.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    return (start, end) if start < end else (0, 0)


def _write(handler: Any, body: bytes, fault: Fault | None) -> None:
    match fault:
        case Cut(after, reset):
            handler.wfile.write(body[:after])
            _hang_up(handler, reset)
        case Stall(after):
            handler.wfile.write(body[:after])
            handler.hub.closing.wait(60)
            handler.close_connection = True
        case Trickle(block, pause):
            for start in range(0, len(body), block):
                if handler.hub.closing.wait(pause):
                    return
                handler.wfile.write(body[start : start + block])
        case _:
            for start in range(0, len(body), _BLOCK):
                handler.wfile.write(body[start : start + _BLOCK])
            if isinstance(fault, WrongLength):
                _hang_up(handler, reset=False)


def _hang_up(handler: Any, reset: bool) -> None:
    handler.close_connection = True
    if reset:
        # A socket that lingers for no time at all is reset when it is closed.
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(handler.connection.detach())
    else:
        with suppress(OSError):  # the client may have gone first
            handler.connection.shutdown(socket.SHUT_RDWR)
