"""Progress of long work: silent in a library; the command line reports it on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Protocol

SOON, MINUTE = 2.0, 60.0


class Reporter(Protocol):
    def say(self, text: str) -> None: ...

    def advance(self, label: str, done: int, total: int | None, note: str = "") -> None: ...


_listeners: list[Reporter] = []


@contextmanager
def report_to(listener: Reporter) -> Iterator[None]:
    """While the context lasts, messages and progress of this process go to `listener`."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@contextmanager
def mute_messages() -> Iterator[None]:
    """While the context lasts, messages and progress are dropped: the work is repeated, and reported then."""
    listeners = _listeners[:]
    _listeners.clear()
    try:
        yield
    finally:
        _listeners[:] = listeners


def log_message(text: str) -> None:
    """Report one line of text."""
    for listener in _listeners:
        listener.say(text)


@contextmanager
def repeat_message(describe: Callable[[float], str]) -> Iterator[None]:
    """While the context lasts, report a line soon and then each minute: what `describe` makes of the seconds that
    passed."""
    began = time.monotonic()
    with run_every(MINUTE, lambda: log_message(describe(time.monotonic() - began)), first=SOON):
        yield


@contextmanager
def run_every(seconds: float, act: Callable[[], None], first: float | None = None) -> Iterator[None]:
    """While the context lasts, call `act` again and again in a thread, `seconds` after it returned, and before that
    `first` seconds after it began."""
    ended = Event()

    def repeat() -> None:
        wait = seconds if first is None else first
        while not ended.wait(wait):
            act()
            wait = seconds

    thread = Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def report_progress(label: str, done: int, total: int | None = None, note: str = "") -> None:
    """`done` of `total` (bytes, rows, steps) of the work called `label`; finished when they are equal. note: further
    information, such as the current loss."""
    for listener in _listeners:
        listener.advance(label, done, total, note)
