"""Pages of the ledger: its head, how to verify it, and all records in pages of fixed ranges, so that a full page never
changes; and the page of sealed windows with the state, terms, results and verification of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ...core.text import escape_untrusted_json, format_count
from ..ledger import Record
from ..sealed.window import Window, read_windows
from ..tables.snapshot import Snapshot
from ..teams import make_team_identity
from .entries import make_team_slug
from .page import Page

SIZE = 200
"""Number of records on a page."""

BY = {"withdrawn": "its team", "removed": "the board"}
"""The kinds of records that take an entry out of its table, and who decided it."""

MOST_LINKS, LONGEST = 20, 4_000
"""Maximum numbers of entries named in a record's line, and of characters of its JSON on a page."""


def list_pages(board: Snapshot, records: Sequence[Record], key: str) -> Iterator[Page]:
    """Yield the page of windows, also if there are none, because it explains what they are; the ledger's first page and
    a page for each range. The page after the last full range always exists, so that the link on a full page works."""
    yield Page("windows.html", "sealed_windows.html", partial(_make_windows_context, board, records))
    if not records:
        return
    entries = [*(row.standing for table in board.views for row in table.rows), *board.apart]
    models = {entry.entry: f"{entry.model} on {entry.benchmark}" for entry in entries}
    yield Page("ledger.html", "ledger.html", partial(_make_head_context, records, key, models))
    for number in range(len(records) // SIZE + 1):
        yield Page(f"ledger/{number}.html", "ledger_range.html", partial(_make_range_context, records, models, number))


def _make_head_context(records: Sequence[Record], key: str, models: Mapping[str, str]) -> dict[str, Any]:
    ranges = [(first // SIZE, first, min(len(records), first + SIZE) - 1) for first in range(0, len(records), SIZE)]
    gone = [describe_record(record, models) for record in reversed(records) if record.kind in BY]
    return {
        "by": BY,
        "key": key,
        "head": records[-1],
        "size": len(records),
        "ranges": ranges[::-1],
        "gone": [(f"ledger/{line['record'].seq // SIZE}.html#record-{line['record'].seq}", line) for line in gone],
        "newest": [describe_record(record, models) for record in reversed(records[-10:])],
    }


def _make_range_context(ledger: Sequence[Record], models: Mapping[str, str], number: int) -> dict[str, Any]:
    first = number * SIZE
    lines = [describe_record(record, models) for record in reversed(ledger[first : first + SIZE])]
    return {"number": number, "first": first, "last": first + SIZE - 1, "full": len(lines) == SIZE, "lines": lines}


def describe_record(record: Record, models: Mapping[str, str]) -> dict[str, Any]:
    """Describe a record for a page. models: the model of each entry by the entry's name. text: what happened; entries:
    name and model of the entries concerned, and `more` that are not named; window: name of the sealed window; quote:
    text by the team or the board; json: the record, `cut` if it is long. A record of an unknown kind, or with missing
    fields, is described by its kind alone."""
    try:
        text, names, quote = _describe_body(record.kind, record.body)
    except (KeyError, TypeError, ValueError, AttributeError):
        text, names, quote = record.kind.replace("_", " "), [], ""
    full_json = escape_untrusted_json(json.dumps(json.loads(record.line()), indent=1, ensure_ascii=False))
    return {
        "record": record,
        "text": text[:1].upper() + text[1:],
        "entries": [(name, models[name]) for name in map(str, names[:MOST_LINKS]) if name in models],
        "more": max(0, len(names) - MOST_LINKS),
        "window": str(record.body.get("window", "")),
        "quote": quote,
        "json": full_json[:LONGEST],
        "cut": len(full_json) > LONGEST,
    }


def _describe_body(kind: str, body: Mapping[str, Any]) -> tuple[str, list[Any], str]:
    """Return what happened, the entries concerned, and text by the team or the board. Raises `KeyError`, `TypeError`,
    `ValueError` or `AttributeError` if fields are missing or of another type."""
    match kind:
        case "opened":
            return f"Board opened, with the key {body['key']}", [], str(body["name"])
        case "submitted" if "window" in body:
            return f"Answers to a sealed window, signed by {body['signed_by']}", [], str(body["team"])
        case "submitted":
            who = f"Team {body['team']}" if body["team"] else "A team without a name"
            runs = body["entries"]
            return f"{who} submitted {format_count(len(runs), 'run')}", [run["entry"] for run in runs], body["note"]
        case "scored" if "window" in body:
            return f"Answers to a sealed window scored: {body['model']} of {body['team']}", [], ""
        case "scored":
            return f"Scored by scorer {body['scorer']}", [body["entry"]], ""
        case "rescored":
            before, after = body["before"], body["after"]
            scorers = f"Scored again by scorer {body['scorer']}, before by {body['replaces']}"
            on_ood = f"OOD {before['ood']:.4f} before, {after['ood']:.4f} after"
            return f"{scorers}: {on_ood}; ID {before['id']:.4f}, {after['id']:.4f}", [body["entry"]], ""
        case "withdrawn" | "removed":
            return kind, [body["entry"]], body["reason"]
        case "referenced":
            return "Declared as reference entries, which are always ranked", list(body["declared"]), ""
    return kind.replace("_", " "), [], ""


_STEPS = {
    "window_opened": "Committed to the secret, opened",
    "seed_revealed": "Secret revealed",
}


def _make_windows_context(board: Snapshot, records: Sequence[Record]) -> dict[str, Any]:
    known = read_windows(records)
    windows = [describe_window(item, known.get(item["terms"]["window"])) for item in reversed(board.windows)]
    return {"windows": windows}


def describe_window(results: Mapping[str, Any], window: Window | None) -> dict[str, Any]:
    """Describe a window for the page. results: those of sealed/results.py; window: its state in the ledger. The clock
    is not read, so the page changes only when a record is added."""
    name, terms = results["terms"]["window"], results["terms"]
    return {
        **results,
        "name": name,
        "anchor": "window-" + re.sub("[^A-Za-z0-9_-]+", "-", name),
        "state": "Revealed" if results["seed"] else f"Open for answers until {terms['closes']}",
        "steps": [(title, window.when[kind]) for kind, title in _STEPS.items() if window and kind in window.when],
        "takes_answers": window is not None and window.secret is None,
        "accepted": [_describe_answers(window, digest) for digest in window.answers] if window else [],
    }


def _describe_answers(window: Window, digest: str) -> dict[str, str]:
    """Return the ledger's record of answers: their digest, the time they were accepted, and the team."""
    body = window.answers[digest]
    team = str(body["team"])
    return {
        "submission": digest,
        "time": window.times[digest],
        "model": str(body["model"]),
        "team": team,
        "slug": make_team_slug(make_team_identity(team, str(body["signed_by"]))),
    }
