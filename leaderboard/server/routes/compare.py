"""Comparisons that a visitor chooses: the page of any two to five entries of one table."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from ....core.errors import FarshiftError, UnknownName
from ...publish.pages.compare import compare_page
from ...publish.site import Site
from ..answers import Stored, stored_answer
from ..reading import Now
from ..refusal import Refusal

router = APIRouter(tags=["compare"])

MOST = 100
"""Characters of an entry's name that are looked at."""


@router.get(
    "/compare",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}, 400: {"description": "These cannot be compared."}},
)
def compare(
    request: Request,
    shown: Now,
    entry: Annotated[list[str], Query(description="An entry; two to five of one table.", max_length=20)],
) -> Response:
    """The page that compares two to five entries of one table."""
    try:
        page = compare_page(Site(shown.snapshot, shown.view), [one[:MOST] for one in entry], "api/v1/compare")
    except UnknownName:
        raise
    except FarshiftError as error:
        raise Refusal.because(400, str(error)) from error
    return stored_answer(request, Stored(page.render(), "text/html; charset=utf-8"))
