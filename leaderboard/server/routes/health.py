"""Health checks: liveness and readiness."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ....core.errors import FarshiftError, get_first_line
from ..answers import make_error_response, to_json_body
from ..models import Health, describe_refusals

router = APIRouter(tags=["operation"])


@router.get("/healthz", response_model=Health)
def healthz(request: Request) -> Response:
    """Report that the process is alive."""
    return _make_response(Health(status="ok"))


@router.get("/readyz", response_model=Health, responses=describe_refusals(503))
def readyz(request: Request) -> Response:
    """Report whether the ledger can be read and tables have been computed."""
    published = request.app.state.published
    try:
        history = published.history()
    except FarshiftError as error:
        return make_error_response(503, get_first_line(error), {"Retry-After": "10"})
    if published.ready is None:
        return make_error_response(503, published.problem or "the tables are being computed", {"Retry-After": "5"})
    behind = history.size - published.ready.history.size
    return _make_response(Health(status="ready", records=history.size, behind=behind, problem=published.problem))


def _make_response(health: Health) -> Response:
    content = to_json_body(health.model_dump()).content
    return Response(content, headers={"Cache-Control": "no-store"}, media_type="application/json")
