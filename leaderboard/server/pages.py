"""Everything outside the API: the board's pages, their static files, and the files of an export."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException

from ...core.errors import Unavailable
from .answers import CHECKED, make_body_response, make_file_response
from .error_page import make_error_page
from .served_board import ServedBoard


class _PagePath(Convertor[str]):  # codespell:ignore convertor
    """Any path outside the API."""

    regex = "(?!api/).*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("page_path", _PagePath())
router = APIRouter(include_in_schema=False)
SHORT = "public, max-age=300"
"""For style sheets and scripts, which are then not requested again with each page."""


@router.get("/healthz")
@router.get("/readyz")
async def check_health(request: Request) -> Response:
    """The health check under /api/v1, also at the root, where proxies look by default."""
    from .routes.health import healthz, readyz

    return await run_in_threadpool(readyz if request.url.path == "/readyz" else healthz, request)


@router.get("/{path:page_path}")
async def serve_page(request: Request, path: str) -> Response:
    """Return a page, a static file of the pages, or a file of the board's export."""
    published: ServedBoard = request.app.state.published
    name = path + "index.html" if path == "" or path.endswith("/") else path
    shown = published.ready
    if shown is not None and (cached := shown.get_cached_page(name)) is not None:
        return make_body_response(request, cached, SHORT if name.startswith("static/") else CHECKED)
    return await run_in_threadpool(_respond_with_file, request, published, path, name)


def _respond_with_file(request: Request, published: ServedBoard, path: str, name: str) -> Response:
    if (exported := published.export(path)) is not None:
        return make_body_response(request, exported)
    digest = published.history().file(path)
    if digest is not None:
        file = published.file(path)
        if file is None:
            raise HTTPException(404)
        return make_file_response(request, file, digest)
    try:
        rendered = published.shown().page(name)
    except Unavailable:
        return make_error_page(request, 503, {"Retry-After": "10"})
    if rendered is None:
        raise HTTPException(404)
    return make_body_response(request, rendered)
