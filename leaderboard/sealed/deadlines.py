"""Whether a board kept to the times that it announced of a window: by the times of the ledger's records, and by the
clock of who verifies.

The times are the board's own. What holds them from outside: a record stands before every later one, so a head of the
ledger that somebody saw or signed was written by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

from .times import parse_time
from .window import LedgerRecord, Window

GRACE = timedelta(seconds=60)
"""What may pass from the check of a time until the ledger has the record."""

TO_OPEN = timedelta(hours=1)
"""What may pass from the announced opening until a window is open: its rows have to be drawn."""


def find_latest_time(records: Iterable[LedgerRecord], clock: datetime) -> datetime:
    """The latest time that is known to be over: that of the clock, or of the newest record."""
    return max([clock, *(parse_time(record.time) for record in records)])


def find_deadline_problems(window: Window, now: datetime) -> list[str]:
    """Everything that was done before its time or after it, or is still not done `now`. Windows of earlier versions
    announced no time of the reveal: nothing of theirs is late."""
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
            problems.append(f"was {what} at {window.when[kind]}, before it was to close ({closes})")
    return problems


def _find_late_answers(window: Window) -> list[str]:
    first, last = parse_time(window.terms.opens), parse_time(window.terms.closes) + GRACE
    late = [digest for digest, time in window.times.items() if not first <= parse_time(time) < last]
    return [f"answers {digest[:12]}.. were taken at {window.times[digest]}, outside the window" for digest in late]


_STEPS = ("seed_committed", "window_opened", "window_closed", "seed_revealed")


def _find_disorder(window: Window) -> list[str]:
    times = [(kind, window.when[kind]) for kind in _STEPS if kind in window.when]
    return [
        f"has {after} at {later}, and {before}, which came first, at {earlier}"
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
            problems.append(f"was never {what}: that was due by {due}")
        elif kind in window.when and parse_time(window.when[kind]) > limit:
            problems.append(f"was {what} at {window.when[kind]}: that was due by {due}")
    return problems
