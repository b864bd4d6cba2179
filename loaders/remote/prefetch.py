"""Prefetch on a few threads, within a limit in bytes.

A thread runs while there is something to read, and ends with the iterator: when that is exhausted, closed or garbage
collected, or when the process ends and leaves it open. A thread that waits for a server then ends after its wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from threading import Event, Lock, Thread, current_thread, main_thread
from typing import Generic, TypeVar

from . import Cancelled

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


class _Readers(Generic[T]):
    """Up to `THREADS` threads for the queued reads; a thread without work ends."""

    def __init__(self, cancel: _CancelEvent) -> None:
        self._cancel, self._lock, self._running = cancel, Lock(), 0
        self._waiting = deque[tuple[Future[T], Callable[[Event], T]]]()

    def start(self, read: Callable[[Event], T]) -> Future[T]:
        future = Future[T]()
        with self._lock:
            self._waiting.append((future, read))
            more = self._running < THREADS
            self._running += more
        if more:
            Thread(target=self._work, name="farshift-stream").start()
        return future

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._running -= 1
                    return
                future, read = self._waiting.popleft()
            try:
                if self._cancel.is_set():
                    raise Cancelled
                future.set_result(read(self._cancel))
            except BaseException as error:  # raised in the thread that requests the result
                future.set_exception(error)
            del future, read  # do not keep a reference to the result


def prefetch_tasks(tasks: Iterator[Task[T]], max_bytes: int) -> Generator[T, None, None]:
    """Yield the results of the tasks in order. Prefetched results and the one yielded last have at most `max_bytes`
    bytes in total, or are a single larger one."""
    cancel, waiting, used_bytes = _CancelEvent(), deque[tuple[int, Future[T]]](), 0
    readers = _Readers[T](cancel)
    try:
        task = next(tasks, None)
        while task is not None or waiting:
            cancel.asker = current_thread()
            while task is not None and (not waiting or used_bytes + task[0] <= max_bytes):
                waiting.append((task[0], readers.start(task[1])))
                used_bytes += task[0]
                task = next(tasks, None)
            size, reading = waiting.popleft()
            yield reading.result()
            del reading
            used_bytes -= size
    finally:
        cancel.set()
