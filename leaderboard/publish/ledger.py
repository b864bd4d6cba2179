"""Pages of the ledger: its head, how to verify it, and all records in pages of fixed ranges, so that a full page never
changes; and the page of sealed windows with the state, terms, results and verification of each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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

MOST_GONE = 100
"""Maximum number of the newest of these that the ledger's first page lists; the pages of records have all."""

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
    gone = [record for record in reversed(records) if record.kind in BY]
    ranges = [(first // SIZE, first, min(len(records), first + SIZE) - 1) for first in range(0, len(records), SIZE)]
    return {
        "by": BY,
        "key": key,
        "head": records[-1],
        "size": len(records),
        "ranges": ranges[::-1],
        "gone": [
            (f"ledger/{record.seq // SIZE}.html#record-{record.seq}", format_record(record, models))
            for record in gone[:MOST_GONE]
        ],
        "more_gone": max(0, len(gone) - MOST_GONE),
        "newest": [format_record(record, models) for record in reversed(records[-10:])],
    }


def _make_range_context(ledger: Sequence[Record], models: Mapping[str, str], number: int) -> dict[str, Any]:
    first = number * SIZE
    records = ledger[first : first + SIZE]
    return {
        "number": number,
        "first": first,
        "last": first + SIZE - 1,
        "full": len(records) == SIZE,
        "lines": [format_record(record, models) for record in reversed(records)],
    }


@dataclass(frozen=True)
class RecordLine:
    """A record as shown on a page. text: what happened; entries: name and model of the entries concerned; more: number
    of further entries; window: name of the sealed window; quote: text by the team or the board; json: the record."""

    record: Record
    text: str
    entries: list[tuple[str, str]]
    more: int
    window: str
    quote: str
    json: str
    cut: bool


def format_record(record: Record, models: Mapping[str, str]) -> RecordLine:
    """Describe a record as text. models: the model of each entry by the entry's name. A record of an unknown kind, or
    with missing fields, is described by its kind alone."""
    try:
        text, entries, quote = _describe_record(record)
    except (KeyError, TypeError, ValueError, AttributeError):
        text, entries, quote = record.kind.replace("_", " "), [], ""
    names = [str(entry) for entry in entries]
    full_json = escape_untrusted_json(json.dumps(json.loads(record.line()), indent=1, ensure_ascii=False))
    return RecordLine(
        record,
        text[:1].upper() + text[1:],
        [(name, models[name]) for name in names[:MOST_LINKS] if name in models],
        max(0, len(names) - MOST_LINKS),
        str(record.body.get("window", "")),
        quote,
        full_json[:LONGEST],
        len(full_json) > LONGEST,
    )


def _describe_record(record: Record) -> tuple[str, list[Any], str]:
    """Return what happened, the entries concerned, and text by the team or the board. Raises `KeyError`, `TypeError`,
    `ValueError` or `AttributeError` if fields are missing or of another type."""
    body = record.body
    match record.kind:
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
            return record.kind, [body["entry"]], body["reason"]
        case "referenced":
            return "Declared as reference entries, which are always ranked", list(body["declared"]), ""
    return record.kind.replace("_", " "), [], ""


_STEPS = {
    "window_opened": "Committed to the secret, opened",
    "seed_revealed": "Secret revealed",
}


def _make_windows_context(board: Snapshot, records: Sequence[Record]) -> dict[str, Any]:
    known = read_windows(records)
    results = reversed(board.windows)
    return {"windows": [_describe_window(item, known.get(item["terms"]["window"])) for item in results]}


def _describe_window(results: Mapping[str, Any], window: Window | None) -> dict[str, Any]:
    """Describe a window for the page. results: those of sealed/results.py; window: its state in the ledger. The clock
    is not read, so the page changes only when a record is added."""
    name = results["terms"]["window"]
    described = {
        **results,
        "name": name,
        "anchor": "window-" + re.sub("[^A-Za-z0-9_-]+", "-", name),
        "state": describe_state(results),
        "steps": [],
        "takes_answers": False,
        "accepted": [],
    }
    if window is None:
        return described
    return described | {
        "steps": [(title, window.when[kind]) for kind, title in _STEPS.items() if kind in window.when],
        "takes_answers": window.secret is None,
        "accepted": [_describe_answers(window, digest) for digest in window.answers],
    }


def describe_state(results: Mapping[str, Any]) -> str:
    """Return the state of a window from its records alone."""
    return "Revealed" if results["seed"] else f"Open for answers until {results['terms']['closes']}"


def _describe_answers(window: Window, digest: str) -> dict[str, str]:
    """Return the ledger's record of answers: their digest, the time they were accepted, and the team."""
    body = window.answers[digest]
    team = str(body["team"])
    slug = make_team_slug(make_team_identity(team, str(body["signed_by"])))
    what = {"submission": digest, "time": window.times[digest], "model": str(body["model"])}
    return what | {"team": team, "slug": slug}
