"""The page for addresses where there is nothing, in the look of the others."""

from __future__ import annotations

from fastapi import Request, Response

from ..publish.page import Page
from .answers import Stored, stored_answer
from .published import Shown

_SAID = {
    404: "There is no page at this address.",
    405: "This address cannot be asked for in this way.",
    503: "The board's tables are being computed: try again in a minute.",
}


def lost_page(request: Request, status: int, headers: dict[str, str] | None = None) -> Response:
    """A page that says what is wrong, with a way to the start."""
    said = {"status": status, "said": _SAID.get(status, "This cannot be shown.")}
    shown: Shown | None = request.app.state.published.ready
    page = Page(request.url.path.removeprefix("/"), "lost.html", lambda: said, shown.frame if shown else None)
    return stored_answer(request, Stored(page.render(), "text/html; charset=utf-8"), "no-store", status, headers)
