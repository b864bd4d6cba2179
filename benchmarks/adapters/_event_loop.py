"""Running a coroutine to completion from synchronous code."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import closing, suppress
from threading import Event, Thread
from typing import Any, TypeVar

T = TypeVar("T")


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in an event loop in its own thread, since the caller may already run a loop (in a
    notebook). An interrupt reaches the caller at once and cancels the coroutine."""
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    ended = Event()  # after an interrupted `Thread.join` the thread counts as ended

    def run() -> None:
        with closing(loop):
            loop.run_until_complete(asyncio.wait({task}))
            loop.run_until_complete(loop.shutdown_default_executor())
        ended.set()

    Thread(target=run, daemon=True).start()
    try:
        ended.wait()
    except BaseException:
        with suppress(RuntimeError):  # it has ended in the meantime
            loop.call_soon_threadsafe(task.cancel)
        ended.wait()
        raise
    return task.result()
