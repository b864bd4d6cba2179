"""Pages of the ledger: its head, how to verify it, and all records in pages of fixed ranges, so that a full page never
changes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ....core.listings.untrusted_text import escape_untrusted_json
from ...ledger import Record
from ..page import Page

if TYPE_CHECKING:
    from ..site import Site

SIZE = 200
"""Number of records on a page."""

BY = {"withdrawn": "its team", "removed": "the board"}
"""The kinds of records that take an entry out of its table, and who decided it."""

MOST_GONE = 100
"""Maximum number of the newest of these that the ledger's first page lists; the pages of records have all."""

MOST_LINKS, LONGEST = 20, 4_000
"""Maximum numbers of entries named in a record's line, and of characters of its JSON on a page."""


def pages(site: Site) -> Iterator[Page]:
    """Yield the first page and a page for each range. The page after the last full range always exists, so that the
    link on a full page works."""
    if not site.records:
        return
    yield Page("ledger.html", "ledger.html", partial(_make_head_context, site))
    for number in range(count_ranges(len(site.records))):
        yield Page(f"ledger/{number}.html", "ledger_range.html", partial(_make_range_context, site, number))


def count_ranges(records: int) -> int:
    """Return the number of pages for a number of records."""
    return records // SIZE + 1


def _make_head_context(site: Site) -> dict[str, Any]:
    records, key = site.records, site.key
    numbers = range(count_ranges(len(records)) - 1, -1, -1)
    gone = [
        (f"ledger/{record.seq // SIZE}.html#record-{record.seq}", format_record(record, site.models))
        for record in records
        if record.kind in BY
    ]
    return {
        "board": site.snapshot,
        "by": BY,
        "key": key,
        "head": records[-1],
        "size": len(records),
        "ranges": [(number, number * SIZE, min(len(records), (number + 1) * SIZE) - 1) for number in numbers],
        "gone": gone[-MOST_GONE:][::-1],
        "more_gone": max(0, len(gone) - MOST_GONE),
        "newest": [format_record(record, site.models) for record in reversed(records[-10:])],
    }


def _make_range_context(site: Site, number: int) -> dict[str, Any]:
    records = site.records[number * SIZE : (number + 1) * SIZE]
    return {
        "board": site.snapshot,
        "number": number,
        "first": number * SIZE,
        "last": (number + 1) * SIZE - 1,
        "full": len(records) == SIZE,
        "lines": [format_record(record, site.models) for record in reversed(records)],
    }


@dataclass(frozen=True)
class RecordLine:
    """A record as shown on a page. text: what happened; entries: name and model of the entries concerned; more: number
    of further entries; window: name of the sealed window; quote: text by the team or the board; json: the record."""

    record: Record
    text: str
    entries: tuple[tuple[str, str], ...] = ()
    more: int = 0
    window: str = ""
    quote: str = ""
    json: str = ""
    cut: bool = False


def format_record(record: Record, models: Mapping[str, str]) -> RecordLine:
    """Describe a record as text. models: the model of each entry by the entry's name. A record of an unknown kind, or
    with missing fields, is described by its kind alone."""
    try:
        text, entries, remark = _WORDS.get(record.kind, _format_kind)(record)
    except (KeyError, TypeError, AttributeError):
        text, entries, remark = _format_kind(record)
    full_json = escape_untrusted_json(json.dumps(json.loads(record.line()), indent=1, ensure_ascii=False))
    names = [str(entry) for entry in entries]
    return RecordLine(
        record,
        text,
        tuple((entry, models[entry]) for entry in names[:MOST_LINKS] if entry in models),
        max(0, len(names) - MOST_LINKS),
        str(record.body.get("window", "")),
        remark,
        full_json[:LONGEST],
        len(full_json) > LONGEST,
    )


Words = tuple[str, list[Any], str]


def _format_kind(record: Record) -> Words:
    words = record.kind.replace("_", " ")
    return words[:1].upper() + words[1:], [], ""


def _format_opened(record: Record) -> Words:
    return f"Board opened, with the key {record.body['key']}", [], str(record.body["name"])


def _format_submitted(record: Record) -> Words:
    body = record.body
    if "window" in body:
        return f"Answers to a sealed window, signed by {body.get('signed_by') or 'no key'}", [], str(body["team"])
    runs = body["entries"]
    who = f"Team {body['team']}" if body["team"] else "A team without a name"
    return (
        f"{who} submitted {len(runs)} {'run' if len(runs) == 1 else 'runs'}",
        [run["entry"] for run in runs],
        body["note"],
    )


def _format_scored(record: Record) -> Words:
    if "window" in record.body:
        return f"Answers to a sealed window scored: {record.body['model']} of {record.body['team']}", [], ""
    return f"Scored by scorer {record.body['scorer']}", [record.body["entry"]], ""


def _format_rescored(record: Record) -> Words:
    body = record.body
    before, after = body["before"], body["after"]
    words = f"OOD {before['ood']:.4f} before, {after['ood']:.4f} after; ID {before['id']:.4f}, {after['id']:.4f}"
    return f"Scored again by scorer {body['scorer']}, before by {body['replaces']}: {words}", [body["entry"]], ""


def _format_removal(record: Record) -> Words:
    return f"{record.kind.capitalize()}", [record.body["entry"]], record.body["reason"]


def _format_referenced(record: Record) -> Words:
    return "Declared as reference entries, which are always ranked", list(record.body["declared"]), ""


def _format_key_rotated(record: Record) -> Words:
    return f"Later records are signed by the key {record.body.get('key')}", [], str(record.body.get("reason", ""))


_WORDS = {
    "opened": _format_opened,
    "submitted": _format_submitted,
    "scored": _format_scored,
    "rescored": _format_rescored,
    "withdrawn": _format_removal,
    "removed": _format_removal,
    "referenced": _format_referenced,
    "key_rotated": _format_key_rotated,
}
