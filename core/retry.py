"""When a request is tried again: one policy for downloads, streams, endpoints and submissions.

A connection that breaks, an answer that is cut off and a status that may pass are worth another try; any other refusal
is final. Pauses double from try to try, and a server that says when to ask again (`Retry-After`) is asked then.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import count
from typing import TypeVar

from .clock import format_duration
from .errors import Unavailable, get_first_line
from .progress import log_message

T = TypeVar("T")

TRIES = 6
"""Tries in all."""

PAUSE = 0.5
"""Seconds before the second try; each later pause is twice the one before."""

LONGEST_PAUSE = 60.0
"""Seconds, also where a server asks for more; where it asks for more than all tries would wait, there is no other."""


class TransientError(Exception):
    """A missing or incomplete response that another try may get. `pause`: seconds that the server asked to wait."""

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


def is_retryable(status: int) -> bool:
    """Whether another try may get another status: the server was late, busy or broken."""
    return status in (408, 425, 429) or (500 <= status <= 599 and status != 501)


def compute_backoff(failures: int, server_delay: float | None = None) -> float:
    """Seconds to wait after so many failed tries, at least one; `server_delay` is what the server asked for."""
    return min(math.ldexp(PAUSE, min(failures, 64) - 1) if server_delay is None else server_delay, LONGEST_PAUSE)


def parse_retry_after(value: str | None) -> float | None:
    """Seconds that a `Retry-After` header asks to wait: it has a number of them, or a date (RFC 9110, section 10.2.3).
    None without a readable one.

    >>> parse_retry_after("7"), parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT"), parse_retry_after("soon")
    (7.0, 0.0, None)
    """
    try:
        seconds = float(value or "")
    except ValueError:
        try:
            when = parsedate_to_datetime(value or "")
        except (ValueError, OverflowError):
            return None
        seconds = (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


def call_with_retries(attempt: Callable[[], T], what: str, wait: Callable[[float], object] = time.sleep) -> T:
    """What `attempt` gives, tried again where it raises `TransientError`, which is told; `Unavailable` after `TRIES`.
    `what` begins its message, such as "x could not be had"."""
    for failed in count(1):
        try:
            return attempt()
        except TransientError as error:
            if error.pause is not None and error.pause > TRIES * LONGEST_PAUSE:
                raise Unavailable(f"{what} ({error}): try again after {format_duration(error.pause)}") from error
            if failed >= TRIES:
                raise Unavailable(f"{what} in {failed} tries ({error}): try again later") from error
            seconds = compute_backoff(failed, error.pause)
            log_message(f"{what} ({get_first_line(error)}): trying again in {seconds:g} s, try {failed + 1} of {TRIES}")
        wait(seconds)
    raise AssertionError("the loop has no end")
