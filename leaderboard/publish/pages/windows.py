"""The sealed windows: what they are, where each stands by the ledger, its terms, its results, and how to check them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ...sealed.window import Window, windows
from ...teams import team_of
from ..page import Page
from .team import Signer, team_slug

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
    yield Page("windows.html", "sealed_windows.html", lambda: _context(site))


def _context(site: Site) -> dict[str, Any]:
    known = windows(site.records)
    return {
        "board": site.snapshot,
        "windows": [shown(one, known.get(one["terms"]["window"])) for one in reversed(site.snapshot.windows)],
        "key": site.key,
    }


def shown(one: Mapping[str, Any], window: Window | None) -> dict[str, Any]:
    """A window as the page shows it. one: its results (sealed/results.py); window: as the ledger has it. No clock is
    read: what stands here changes when a record is added, and at no other time."""
    terms = one["terms"]
    return {
        **one,
        "name": terms["window"],
        "anchor": anchor(terms["window"]),
        "state": state_of(one, window),
        "steps": []
        if window is None
        else [(said, window.when[kind]) for kind, said in _STEPS.items() if kind in window.when],
        "takes_answers": window is not None and window.opened is not None and window.closed is None,
        "revealed": bool(one["seed"]),
        "receipts": [] if window is None else [receipt_of(window, digest) for digest in window.answers],
    }


def state_of(one: Mapping[str, Any], window: Window | None) -> str:
    """Where a window stands by its records alone."""
    terms = one["terms"]
    if one["seed"]:
        return "Revealed"
    if window is None or window.opened is None:
        return "Committed: not drawn yet"
    if window.closed is not None:
        return f"Closed: the secret is due by {terms.get('reveals') or 'no announced time'}"
    return f"Open for answers from {terms['opens']} until {terms['closes']}"


def anchor(name: str) -> str:
    """A window's name as an id in the page."""
    return "window-" + re.sub("[^A-Za-z0-9_-]+", "-", name)


def receipt_of(window: Window, digest: str) -> dict[str, str]:
    """What the ledger says of some answers: their digest, when they were taken, and by whom."""
    body = window.answers[digest]
    signer = Signer(str(body["team"]), str(body.get("signed_by", "")))
    slug = team_slug(team_of(signer))
    return {
        "submission": digest,
        "time": window.times[digest],
        "team": signer.team,
        "slug": slug,
        "model": str(body["model"]),
    }
