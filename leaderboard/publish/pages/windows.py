"""The page of sealed windows: an explanation, and the state, terms, results and verification of each window."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...sealed.window import Window, read_windows
from ...teams import identify_team
from ..page import Page
from .team import Signer, make_team_slug

if TYPE_CHECKING:
    from ..site import Site

_STEPS = {
    "seed_committed": "Committed to the secret",
    "window_opened": "Test set drawn, opened",
    "window_closed": "Closed",
    "seed_revealed": "Secret revealed",
}


def pages(site: Site) -> Iterator[Page]:
    """Yield the page of all windows, also if there are none, because it explains what they are."""
    yield Page("windows.html", "sealed_windows.html", lambda: _make_context(site))


def _make_context(site: Site) -> dict[str, Any]:
    known = read_windows(site.records)
    return {
        "board": site.snapshot,
        "windows": [
            describe_window(results, known.get(results["terms"]["window"]))
            for results in reversed(site.snapshot.windows)
        ],
        "key": site.key,
    }


def describe_window(results: Mapping[str, Any], window: Window | None) -> dict[str, Any]:
    """Describe a window for the page. one: its results (sealed/results.py); window: its state in the ledger. The clock
    is not read, so the page changes only when a record is added."""
    terms = results["terms"]
    return {
        **results,
        "name": terms["window"],
        "anchor": make_anchor(terms["window"]),
        "state": describe_state(results, window),
        "steps": []
        if window is None
        else [(title, window.when[kind]) for kind, title in _STEPS.items() if kind in window.when],
        "takes_answers": window is not None and window.opened is not None and window.closed is None,
        "revealed": bool(results["seed"]),
        "receipts": [] if window is None else [describe_receipt(window, digest) for digest in window.answers],
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


def make_anchor(name: str) -> str:
    """Return a window's name as an HTML id."""
    return "window-" + re.sub("[^A-Za-z0-9_-]+", "-", name)


def describe_receipt(window: Window, digest: str) -> dict[str, str]:
    """Return the ledger's record of answers: their digest, the time they were accepted, and the team."""
    body = window.answers[digest]
    signer = Signer(str(body["team"]), str(body.get("signed_by", "")))
    slug = make_team_slug(identify_team(signer))
    return {
        "submission": digest,
        "time": window.times[digest],
        "team": signer.team,
        "slug": slug,
        "model": str(body["model"]),
    }
