"""Comparison page for any two to five entries of one table, chosen by a visitor."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ....core.errors import FarshiftError, UnknownName
from ...publish.compare import make_compare_page
from ...publish.site import Site
from ..answers import ResponseBody, make_body_response
from ..dependencies import Now
from ..http_problem import HTTPProblem

router = APIRouter(tags=["compare"])

MOST = 100
"""Characters of an entry's name that are read."""


@router.get(
    "/compare",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, 400: {"description": "These entries cannot be compared."}},
)
def compare(
    request: Request,
    shown: Now,
    entry: Annotated[list[str], Query(description="An entry; give two to five of one table.", max_length=20)],
) -> Response:
    """Return the page that compares two to five entries of one table."""
    try:
        page = make_compare_page(Site(shown.snapshot, shown.view), [name[:MOST] for name in entry], "api/v1/compare")
    except UnknownName:
        raise
    except FarshiftError as error:
        raise HTTPProblem.make(400, str(error)) from error
    return make_body_response(request, ResponseBody(page.render(), "text/html; charset=utf-8"))
