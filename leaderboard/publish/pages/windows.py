"""The sealed windows: what they are, where each stands by the ledger, its terms, its results, and how to check them."""

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
    "window_opened": "Drawn and opened",
    "window_closed": "Closed",
    "seed_revealed": "Secret revealed",
}


def pages(site: Site) -> Iterator[Page]:
    """The one page of all windows; also where there are none, for it says what they are."""
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
    """A window as the page shows it. one: its results (sealed/results.py); window: as the ledger has it. No clock is
    read: what stands here changes when a record is added, and at no other time."""
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
    """Where a window stands by its records alone."""
    terms = results["terms"]
    if results["seed"]:
        return "Revealed"
    if window is None or window.opened is None:
        return "Committed: not drawn yet"
    if window.closed is not None:
        return f"Closed: the secret is due by {terms.get('reveals') or 'no announced time'}"
    return f"Open for answers from {terms['opens']} until {terms['closes']}"


def make_anchor(name: str) -> str:
    """A window's name as an id in the page."""
    return "window-" + re.sub("[^A-Za-z0-9_-]+", "-", name)


def describe_receipt(window: Window, digest: str) -> dict[str, str]:
    """What the ledger says of some answers: their digest, when they were taken, and by whom."""
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
