"""The application: a board's pages, its API, and the files of its export."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import MissingExtra
from ...core.plugins import find_files_by_name, load_module
from ...core.settings import get_version

if TYPE_CHECKING:
    from fastapi import FastAPI

ROUTES = "leaderboard/server/routes"
API = "/api/v1"


def create_app(location: Path | str, *, url_prefix: str = "", workers: int | None = None) -> FastAPI:
    """Create the application that serves the board at `location`: a folder, an export, or an address (read-only).

    url_prefix: the path under which it is served, such as /board. workers: how many submissions this process scores at
    once; by default as in the board's settings. Raises `MissingExtra` without FastAPI.

    A module in `routes/` adds paths below /api/v1 with its `router`. Its `on_start(app)`, if defined, is called when
    the server starts; the function that this returns is called when the server stops."""
    try:
        from fastapi import FastAPI
    except ImportError as error:
        raise MissingExtra("the board's server", "server") from error
    from .drain_body import DrainRequestBody
    from .errors import add_handlers
    from .pages import router as pages
    from .security import AddSecurityHeaders, AnswerHeadRequests
    from .served_board import ServedBoard

    modules = [load_module(ROUTES, name, "route") for name in sorted(find_files_by_name(ROUTES, ".py"))]

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        from starlette.concurrency import run_in_threadpool

        await run_in_threadpool(app.state.published.start)
        stops = [
            stop for plugin in modules if hasattr(plugin, "on_start") and (stop := plugin.on_start(app)) is not None
        ]
        try:
            yield
        finally:
            for stop in reversed(stops):
                await run_in_threadpool(stop)
            await run_in_threadpool(app.state.published.close)

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
    app.state.published, app.state.workers = ServedBoard(str(location)), workers
    for plugin in modules:
        app.include_router(plugin.router, prefix=API)
    app.include_router(pages)
    add_handlers(app)
    app.add_middleware(AnswerHeadRequests)
    app.add_middleware(AddSecurityHeaders, prefix=prefix, open=("/api/", *_EXPORTED))
    app.add_middleware(DrainRequestBody)
    return app


_EXPORTED = ("/board.toml", "/ledger.jsonl", "/submissions/", "/scores/", "/challenges/", "/sealed/")
"""The files of an export."""
