"""The page of sealed windows: an explanation, and the state, terms, results and verification of each window."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..sealed.window import Window, read_windows
from ..teams import make_team_identity
from .page import Page
from .teams import make_team_slug

if TYPE_CHECKING:
    from .site import Site

_STEPS = {
    "seed_committed": "Committed to the secret",
    "window_opened": "Test set drawn, opened",
    "window_closed": "Closed",
    "seed_revealed": "Secret revealed",
}


def list_pages(site: Site) -> Iterator[Page]:
    """Yield the page of all windows, also if there are none, because it explains what they are."""
    yield Page("windows.html", "sealed_windows.html", lambda: _make_context(site))


def _make_context(site: Site) -> dict[str, Any]:
    known = read_windows(site.records)
    results = reversed(site.snapshot.windows)
    return {"windows": [_describe_window(item, known.get(item["terms"]["window"])) for item in results]}


def _describe_window(results: Mapping[str, Any], window: Window | None) -> dict[str, Any]:
    """Describe a window for the page. results: those of sealed/results.py; window: its state in the ledger. The clock
    is not read, so the page changes only when a record is added."""
    name = results["terms"]["window"]
    described = {
        **results,
        "name": name,
        "anchor": "window-" + re.sub("[^A-Za-z0-9_-]+", "-", name),
        "state": describe_state(results, window),
        "steps": [],
        "takes_answers": False,
        "receipts": [],
    }
    if window is None:
        return described
    return described | {
        "steps": [(title, window.when[kind]) for kind, title in _STEPS.items() if kind in window.when],
        "takes_answers": window.opened is not None and window.closed is None,
        "receipts": [_describe_receipt(window, digest) for digest in window.answers],
    }


def describe_state(results: Mapping[str, Any], window: Window | None) -> str:
    """Return the state of a window from its records alone."""
    terms = results["terms"]
    if results["seed"]:
        return "Revealed"
    if window is None or window.opened is None:
        return "Committed: the test set is not drawn yet"
    if window.closed is not None:
        return f"Closed: the secret is due by {terms.get('reveals') or 'no announced time'}"
    return f"Open for answers from {terms['opens']} until {terms['closes']}"


def _describe_receipt(window: Window, digest: str) -> dict[str, str]:
    """Return the ledger's record of answers: their digest, the time they were accepted, and the team."""
    body = window.answers[digest]
    team = str(body["team"])
    slug = make_team_slug(make_team_identity(team, str(body.get("signed_by", ""))))
    what = {"submission": digest, "time": window.times[digest], "model": str(body["model"])}
    return what | {"team": team, "slug": slug}
