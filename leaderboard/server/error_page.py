"""The error page, in the style of the other pages."""

from __future__ import annotations

from fastapi import Request, Response

from ..publish.page import Page
from .answers import ResponseBody, make_body_response
from .served_board import RenderedBoard

_MESSAGES = {
    404: "There is no page at this address.",
    405: "This address does not support this request method.",
    503: "The board's tables are being computed. Try again in a minute.",
}


def make_error_page(request: Request, status: int, headers: dict[str, str] | None = None) -> Response:
    """Return a page that states the error and links to the home page."""
    context = {"status": status, "message": _MESSAGES.get(status, "This page cannot be shown.")}
    shown: RenderedBoard | None = request.app.state.published.ready
    page = Page(request.url.path.removeprefix("/"), "lost.html", lambda: context, shown.frame if shown else None)
    return make_body_response(
        request, ResponseBody(page.render(), "text/html; charset=utf-8"), "no-store", status, headers
    )
