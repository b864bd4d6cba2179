"""The application: a board's pages, its API, and the files of its export."""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import FarshiftError, MissingExtra, UnknownName, get_first_line
from ...core.settings import get_version
from ...core.text import escape_untrusted

try:
    from fastapi import FastAPI, Request, Response
    from fastapi.exceptions import RequestValidationError
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
except ImportError as error:
    raise MissingExtra("the board's server", "server") from error
from ..board import Board
from ..publish.page import Page
from . import read_api, submissions
from .accounts import HTTPProblem
from .answers import (
    CHECKED,
    ResponseBody,
    make_body_response,
    make_file_response,
    make_problem_response,
)
from .served_board import ServedBoard

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

API = "/api/v1"
EXPORTED = ("/board.toml", "/ledger.jsonl", "/submissions/", "/scores/", "/sealed/")
"""The files of an export."""
HEALTH = ("/healthz", "/readyz")

SHORT = "public, max-age=300"
"""Caching of style sheets and scripts, which are then not requested again with each page."""

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

log = logging.getLogger("farshift.server")
_ID = re.compile(r"(?<=/)([0-9a-f]{12})[0-9a-f]{52}(?=/|$)")


def create_app(folder: Path | str, *, url_prefix: str = "") -> FastAPI:
    """Create the application that serves the board in a folder. Raises `FarshiftError` if it cannot be opened.

    url_prefix: the path under which it is served, such as /board."""
    served = ServedBoard(Board(folder))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(served.start)
        yield
        await run_in_threadpool(served.close)

    prefix = "/" + url_prefix.strip("/") if url_prefix.strip("/") else ""
    app = FastAPI(
        title="Farshift board",
        version=get_version(),
        summary="A leaderboard of distribution-shift benchmarks whose scores anyone can recompute.",
        openapi_url=f"{API}/openapi.json",
        docs_url=None,  # these pages load scripts from a third party
        redoc_url=None,
        servers=[{"url": prefix or "/"}],
        lifespan=lifespan,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.published, app.state.intake = served, submissions.open_state(served.board)
    for routes in (read_api, submissions):
        app.include_router(routes.router, prefix=API)
    _add_pages(app, served)
    add_error_handlers(app)
    app.add_middleware(_SecurityHeaders, prefix=prefix)
    return app


def _add_pages(app: FastAPI, served: ServedBoard) -> None:
    """Add everything outside the API: the health checks at the root, where proxies look by default, the board's pages
    with their static files, and the files of an export."""
    for path in HEALTH:
        app.add_api_route(path, getattr(read_api, path.removeprefix("/")), include_in_schema=False)

    async def serve_page(request: Request, path: str) -> Response:
        if request.url.path.startswith("/api/"):
            raise HTTPProblem(404, "there is no such resource")
        name = path + "index.html" if path == "" or path.endswith("/") else path
        shown = served.ready
        if shown is not None and (cached := shown.get_cached_page(name)) is not None:
            return make_body_response(request, cached, SHORT if name.startswith("static/") else CHECKED)
        return await run_in_threadpool(_make_page_response, request, served, path, name)

    app.add_api_route("/{path:path}", serve_page, include_in_schema=False, response_model=None)


def _make_page_response(request: Request, served: ServedBoard, path: str, name: str) -> Response:
    """Return a page, a static file of the pages, or a file of the board's export."""
    if (exported := served.export(path)) is not None:
        return make_body_response(request, exported)
    digest = served.history().files.get(path)
    if digest is not None:
        file = served.file(path, digest)
        return make_file_response(request, file, digest) if file is not None else _make_error_page(request, 404, {})
    rendered = served.shown().page(name)
    return make_body_response(request, rendered) if rendered is not None else _make_error_page(request, 404, {})


_MESSAGES = {
    404: "There is no page at this address.",
    405: "This address does not support this request method.",
    503: "This page cannot be shown now. Try again in a minute.",
}


def _make_error_page(request: Request, status: int, headers: dict[str, str]) -> Response:
    """Return a page that states the error and links to the home page, in the style of the other pages."""
    context = {"status": status, "message": _MESSAGES.get(status, "This page cannot be shown.")}
    shown = request.app.state.published.ready
    page = Page(request.url.path.removeprefix("/"), "lost.html", lambda: context, shown.frame if shown else None)
    body = ResponseBody(page.render(), "text/html; charset=utf-8")
    return make_body_response(request, body, "no-store", status, headers)


def respond(request: Request, problem: HTTPProblem, headers: dict[str, str] | None = None) -> Response:
    """Return a refusal in one line: as JSON to API requests and health checks, as a page to browsers."""
    headers = dict(headers or {}) | ({} if problem.after is None else {"Retry-After": str(problem.after)})
    if request.url.path.startswith("/api/") or request.url.path in HEALTH:
        return make_problem_response(problem, headers)
    return _make_error_page(request, problem.status, headers)


def add_error_handlers(app: FastAPI) -> None:
    """Answer every error in one line."""

    def handle_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        headers = {**(error.headers or {})}
        headers |= {"Allow": "GET, HEAD"} if headers.get("Allow") == "GET" else {}
        return respond(request, HTTPProblem(error.status_code, str(error.detail)), headers)

    def handle_invalid_request(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        wrong = [f"{'.'.join(map(str, problem['loc'][1:]))}: {problem['msg']}" for problem in error.errors()]
        return respond(request, HTTPProblem(422, "; ".join(wrong[:5]) or "the request cannot be read"))

    def handle_farshift_error(request: Request, error: Exception) -> Response:
        if isinstance(error, HTTPProblem):
            return respond(request, error)
        if isinstance(error, UnknownName | MissingExtra):
            status = 404 if isinstance(error, UnknownName) else 501
            return respond(request, HTTPProblem(status, get_first_line(error)))
        log.error("%s %s: %s", request.method, shorten_logged_path(request.url.path), get_first_line(error))
        # Such as a full disk, an unreachable database or a changed file: only the log says which, and where.
        return respond(request, HTTPProblem(503, "the board cannot do this now: try again later", 10))

    def handle_unexpected_error(request: Request, error: Exception) -> Response:
        log.error("%s %s: %s", request.method, request.url.path, type(error).__name__, exc_info=error)
        return make_problem_response(HTTPProblem(500, "internal server error; see the server's log"), {})

    app.add_exception_handler(HTTPException, handle_http_error)
    app.add_exception_handler(RequestValidationError, handle_invalid_request)
    app.add_exception_handler(FarshiftError, handle_farshift_error)
    app.add_exception_handler(Exception, handle_unexpected_error)


def shorten_logged_path(path: str) -> str:
    """Return a path for the log, with only the first twelve digits of a submission id, because the id grants access."""
    return escape_untrusted(_ID.sub(r"\1..", path[:300]))


class _SecurityHeaders:
    """ASGI wrapper that adds security headers to each response, and answers HEAD like GET (the HTTP server drops the
    body). prefix: the path under which the application is served, such as /board; a proxy may strip it or not."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self.app, self.prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        path: str = scope["path"]
        if self.prefix and path == self.prefix:
            moved = Response(status_code=308, headers={"Location": self.prefix + "/"})
            return await moved(scope, receive, send)
        if self.prefix and path.startswith(self.prefix + "/"):
            path = path.removeprefix(self.prefix)
        public = path.startswith((f"{API}/", *EXPORTED))
        headers = HEADERS | (PUBLIC if public and scope["method"] in ("GET", "HEAD") else {})
        more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *more]
            await send(message)

        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        await self.app({**scope, "path": path, "root_path": "", "method": method}, receive, send_with_headers)
