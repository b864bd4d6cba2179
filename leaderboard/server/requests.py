"""Log one line per request. Headers, queries and full submission ids are never logged, so the log holds no secrets."""

from __future__ import annotations

import logging
import re
import time
from typing import TYPE_CHECKING

from ...core.text import escape_untrusted

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger("farshift.requests")

_ID = re.compile(r"(?<=/)([0-9a-f]{12})[0-9a-f]{52}(?=/|$)")
_LONGEST = 300


def shorten_logged_path(path: str) -> str:
    """Return a path for the log, with only the first twelve digits of a submission id, because the id grants access."""
    return escape_untrusted(_ID.sub(r"\1..", path[:_LONGEST]))


class LogRequests:
    """ASGI wrapper that logs each request: client, method, path, status, bytes, milliseconds."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        began, status, size = time.perf_counter(), 0, 0

        async def counted(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
            else:
                size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, counted)
        finally:
            client = (scope.get("client") or ("-",))[0]
            took = 1000 * (time.perf_counter() - began)
            path = shorten_logged_path(scope["path"])
            log.info("%s %s %s %d %d B %.0f ms", client, scope["method"], path, status, size, took)
