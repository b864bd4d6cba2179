"""ASGI wrappers that add security headers to each response, and answer HEAD requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
PUBLIC = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "ETag, Link, Repr-Digest, Content-Range",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
"""Additional headers of API responses: pages of other origins may read public data, without credentials."""

PREFLIGHT = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, HEAD",
    "Access-Control-Allow-Headers": "If-None-Match, Range",
    "Access-Control-Max-Age": "86400",
}


class AddSecurityHeaders:
    """ASGI wrapper that adds these headers to each response, below a URL prefix.

    prefix: the path under which the application is served, such as /board; a proxy may strip it or not. open: the paths
    that pages of other origins may read."""

    def __init__(self, app: ASGIApp, prefix: str = "", open: tuple[str, ...] = ("/api/",)) -> None:
        self.app, self.prefix, self.open = app, prefix, open

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        path: str = scope["path"]
        if self.prefix and (path == self.prefix or path.startswith(self.prefix + "/")):
            path = path.removeprefix(self.prefix)
            if not path:
                return await _send_headers(send, 308, {"Location": self.prefix + "/"})
        scope = {**scope, "path": path, "root_path": ""}
        public = path.startswith(self.open)
        requested_method = dict(scope["headers"]).get(b"access-control-request-method", b"")
        if public and scope["method"] == "OPTIONS" and requested_method in (b"GET", b"HEAD"):
            return await _send_headers(send, 204, HEADERS | PREFLIGHT)
        headers = HEADERS | (PUBLIC if public and scope["method"] in ("GET", "HEAD") else {})

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message["headers"]}
                more = [(key.lower().encode(), value.encode()) for key, value in headers.items()]
                message["headers"] = [*message["headers"], *((key, value) for key, value in more if key not in present)]
            await send(message)

        await self.app(scope, receive, guarded)


class AnswerHeadRequests:
    """ASGI wrapper that answers HEAD like GET, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            return await self.app(scope, receive, send)

        async def bodiless(message: Message) -> None:
            if message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        await self.app({**scope, "method": "GET"}, receive, bodiless)


async def _send_headers(send: Send, status: int, headers: dict[str, str]) -> None:
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": [*raw, (b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
