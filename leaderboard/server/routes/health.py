"""Whether the server lives, and whether it can answer."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ....core.errors import FarshiftError, first_line
from ..answers import as_error, as_json
from ..models import Health, refused

router = APIRouter(tags=["operation"])


@router.get("/healthz", response_model=Health)
def healthz(request: Request) -> Response:
    """The process answers."""
    return _said(Health(status="ok"))


@router.get("/readyz", response_model=Health, responses=refused(503))
def readyz(request: Request) -> Response:
    """The ledger can be read, and tables are there to be shown."""
    published = request.app.state.published
    try:
        history = published.history()
    except FarshiftError as error:
        return as_error(503, first_line(error), {"Retry-After": "10"})
    if published.ready is None:
        return as_error(503, published.problem or "the tables are being computed", {"Retry-After": "5"})
    behind = history.size - published.ready.history.size
    return _said(Health(status="ready", records=history.size, behind=behind, problem=published.problem))


def _said(health: Health) -> Response:
    content = as_json(health.model_dump()).content
    return Response(content, headers={"Cache-Control": "no-store"}, media_type="application/json")
