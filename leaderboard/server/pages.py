"""The pages of the board, the files that they need, and the files of an export: whatever is not of the API."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.exceptions import HTTPException

from ...core.errors import Unavailable
from .answers import CHECKED, file_answer, stored_answer
from .lost import lost_page
from .published import Published


class _PagePath(Convertor[str]):  # codespell:ignore convertor
    """Any path that is not of the API."""

    regex = "(?!api/).*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("page_path", _PagePath())
router = APIRouter(include_in_schema=False)
SHORT = "public, max-age=300"
"""Style and scripts are not asked for again with every page."""


@router.get("/healthz")
@router.get("/readyz")
async def health(request: Request) -> Response:
    """The same as below /api/v1, where proxies look first."""
    from .routes.health import healthz, readyz

    return await run_in_threadpool(readyz if request.url.path == "/readyz" else healthz, request)


@router.get("/{path:page_path}")
async def page(request: Request, path: str) -> Response:
    """A page, a file that pages need, or a file of the board as an export has it."""
    published: Published = request.app.state.published
    name = path + "index.html" if path == "" or path.endswith("/") else path
    shown = published.ready
    if shown is not None and (kept := shown.kept(name)) is not None:
        return stored_answer(request, kept, SHORT if name.startswith("static/") else CHECKED)
    return await run_in_threadpool(_answer, request, published, path, name)


def _answer(request: Request, published: Published, path: str, name: str) -> Response:
    if (exported := published.export(path)) is not None:
        return stored_answer(request, exported)
    digest = published.history().file(path)
    if digest is not None:
        found = published.file(path)
        if found is None:
            raise HTTPException(404)
        return file_answer(request, found, digest)
    try:
        rendered = published.shown().page(name)
    except Unavailable:
        return lost_page(request, 503, {"Retry-After": "10"})
    if rendered is None:
        raise HTTPException(404)
    return stored_answer(request, rendered)
