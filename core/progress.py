"""Progress of long work. Silent in a library; the command line listens and draws on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Reporter(Protocol):
    def say(self, text: str) -> None: ...

    def advance(self, label: str, done: int, total: int | None, note: str = "") -> None: ...


_listeners: list[Reporter] = []


@contextmanager
def report_to(listener: Reporter) -> Iterator[None]:
    """While the context lasts, `listener` hears what is going on in this process."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def mute_messages() -> Iterator[None]:
    """While the context lasts, nobody hears what is going on: it is done again, and told then."""
    listeners = _listeners[:]
    _listeners.clear()
    try:
        yield
    finally:
        _listeners[:] = listeners


def log_message(text: str) -> None:
    """One line about something worth knowing."""
    for listener in _listeners:
        listener.say(text)


def report_progress(label: str, done: int, total: int | None = None, note: str = "") -> None:
    """`done` of `total` (bytes, rows, steps) of the work called `label`; finished when they are equal. note: what else
    is worth knowing of it now, such as a loss."""
    for listener in _listeners:
        listener.advance(label, done, total, note)
