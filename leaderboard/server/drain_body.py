"""Read the rest of a refused request's body for a limited time. Otherwise closing the connection resets it while the
client still sends: the client loses the response (RFC 9112, section 9.6), and a proxy reports 502 instead."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST = 16 << 20
"""At most this many bytes are read and discarded."""

SECONDS = 5.0
"""Seconds for which the body is read; a client that is refused because it is slow is not waited for."""

_SLOW = 408


class DrainRequestBody:
    """ASGI wrapper that drains request bodies, so that responses reach clients that are still sending."""

    def __init__(self, app: ASGIApp, most: int = MOST, seconds: float = SECONDS) -> None:
        self.app, self.most, self.seconds = app, most, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _has_body(scope):
            return await self.app(scope, receive, send)
        ended = False

        async def received() -> Message:
            nonlocal ended
            message = await receive()
            ended = message["type"] != "http.request" or not message.get("more_body", False)
            return message

        async def answered(message: Message) -> None:
            if message["type"] == "http.response.start" and message["status"] != _SLOW and not ended:
                left = self.most
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.seconds):
                        while not ended and left > 0:
                            left -= len((await received()).get("body", b""))
            await send(message)

        await self.app(scope, received, answered)


def _has_body(scope: Scope) -> bool:
    """Return whether a body is sent without waiting for permission (`Expect: 100-continue`)."""
    headers = dict(scope["headers"])
    stated = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    return stated and b"expect" not in headers
