"""Prefetch on a few threads, within a limit in bytes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from threading import Event, Thread, current_thread, main_thread
from typing import TypeVar

from .files import Cancelled

T = TypeVar("T")

THREADS = 4

_LOOK = 0.1
"""Seconds between two checks whether the process is ending, while a thread waits to retry a request."""

Task = tuple[int, Callable[[Event], T]]
"""A read: its size in bytes, and the function, which stops once its event is set."""


class _CancelEvent(Event):
    """Set at the end of the iterator, and at the end of the process: when the main thread and the last requesting
    thread have ended.

    The interpreter joins its threads before it closes open iterators, so a `finally` would not stop them.
    """

    def __init__(self) -> None:
        super().__init__()
        self.asker = current_thread()

    def is_set(self) -> bool:
        return super().is_set() or not (main_thread().is_alive() or self.asker.is_alive())

    def wait(self, timeout: float | None = None) -> bool:
        left = timeout
        while not self.is_set() and (left is None or left > 0):
            super().wait(_LOOK if left is None else min(left, _LOOK))
            left = None if left is None else left - _LOOK
        return self.is_set()


def prefetch_tasks(tasks: Iterator[Task[T]], max_bytes: int) -> Generator[T, None, None]:
    """Yield the results of the tasks in order, of which up to `THREADS` run at once. Prefetched results and the one
    yielded last have at most `max_bytes` bytes in total, or are a single larger one.

    Threads end when the iterator is exhausted, closed or garbage collected, or when the process ends and leaves it
    open. A thread that waits for a server then ends after its wait.
    """
    cancel, running, used_bytes = _CancelEvent(), deque[tuple[int, Future[T]]](), 0
    try:
        task = next(tasks, None)
        while task is not None or running:
            cancel.asker = current_thread()
            while task is not None and len(running) < THREADS and (not running or used_bytes + task[0] <= max_bytes):
                future = Future[T]()
                Thread(target=_run, args=(task[1], future, cancel), name="farshift-stream").start()
                running.append((task[0], future))
                used_bytes += task[0]
                task = next(tasks, None)
            size, future = running.popleft()
            yield future.result()
            del future  # do not keep a reference to the result
            used_bytes -= size
    finally:
        cancel.set()


def _run(read: Callable[[Event], T], future: Future[T], cancel: Event) -> None:
    try:
        if cancel.is_set():
            raise Cancelled
        future.set_result(read(cancel))
    except BaseException as error:  # raised in the thread that requests the result
        future.set_exception(error)
