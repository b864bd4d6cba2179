"""Reading ahead on a few threads, within a bound of bytes.

The threads begin with the first result that is asked for and end with the iterator: when it is used up, closed or
forgotten. A thread that waits for a server then ends as soon as its wait does.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TypeVar

T = TypeVar("T")

THREADS = 4

Task = tuple[int, Callable[[Event], T]]
"""What is to be read: its bytes, and the reading itself, which gives up once its event is set."""


def ahead(tasks: Iterator[Task[T]], most: int) -> Generator[T, None, None]:
    """The tasks' results in order. Those that are read, and the one handed out last, are at most `most` bytes together,
    or a single one that is larger."""
    halt, waiting, held = Event(), deque[tuple[int, Future[T]]](), 0
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="farshift-stream")
    try:
        task = next(tasks, None)
        while task is not None or waiting:
            while task is not None and (not waiting or held + task[0] <= most):
                waiting.append((task[0], threads.submit(task[1], halt)))
                held += task[0]
                task = next(tasks, None)
            size, reading = waiting.popleft()
            yield reading.result()
            del reading
            held -= size
    finally:
        halt.set()
        threads.shutdown(wait=False, cancel_futures=True)
