"""Whether a board kept to the announced times of a window: by the times of the ledger's records, and by the clock of
the verifying machine.

The times are set by the board itself. They are bounded from outside: every record precedes the later ones, so a head of
the ledger that somebody saw or signed existed by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

from .times import parse_time
from .window import LedgerRecord, Window

GRACE = timedelta(seconds=60)
"""The delay allowed between the check of a time and the record in the ledger."""

TO_OPEN = timedelta(hours=1)
"""The delay allowed between the announced opening and the actual one: the rows have to be drawn."""


def find_latest_time(records: Iterable[LedgerRecord], clock: datetime) -> datetime:
    """The latest time known to be past: that of the clock, or of the newest record."""
    return max([clock, *(parse_time(record.time) for record in records)])


def find_deadline_problems(window: Window, now: datetime) -> list[str]:
    """List every step that was done too early or too late, or is overdue `now`. Windows of earlier versions announced
    no time of the reveal, so none of their steps is late."""
    return [
        *_find_early_steps(window),
        *_find_late_answers(window),
        *_find_disorder(window),
        *_find_late_steps(window, now),
    ]


def _find_early_steps(window: Window) -> list[str]:
    problems, closes = [], window.terms.closes
    for kind, what in (("window_closed", "closed"), ("scored", "scored"), ("seed_revealed", "revealed")):
        if kind in window.when and parse_time(window.when[kind]) < parse_time(closes):
            problems.append(f"was {what} at {window.when[kind]}, before its closing time ({closes})")
    return problems


def _find_late_answers(window: Window) -> list[str]:
    first, last = parse_time(window.terms.opens), parse_time(window.terms.closes) + GRACE
    late = [digest for digest, time in window.times.items() if not first <= parse_time(time) < last]
    return [f"submission {digest[:12]}.. was accepted at {window.times[digest]}, outside the window" for digest in late]


_STEPS = ("seed_committed", "window_opened", "window_closed", "seed_revealed")


def _find_disorder(window: Window) -> list[str]:
    times = [(kind, window.when[kind]) for kind in _STEPS if kind in window.when]
    return [
        f"has {after} at {later}, before {before} at {earlier}"
        for (before, earlier), (after, later) in pairwise(times)
        if parse_time(later) < parse_time(earlier) - GRACE
    ]


def _find_late_steps(window: Window, now: datetime) -> list[str]:
    terms = window.terms
    if not terms.reveals:
        return []
    steps = [
        ("window_opened", "opened", terms.opens, TO_OPEN),
        ("seed_revealed", "closed and its seed revealed", terms.reveals, GRACE),
    ]
    problems = []
    for kind, what, due, grace in steps:
        limit = parse_time(due) + grace
        if kind not in window.when and now > limit:
            problems.append(f"was never {what} (due by {due})")
        elif kind in window.when and parse_time(window.when[kind]) > limit:
            problems.append(f"was {what} at {window.when[kind]} (due by {due})")
    return problems
