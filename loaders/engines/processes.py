"""Items side by side on this machine, one process a core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...splits.errors import FarshiftError
from . import in_order, usable_cores


def mapped(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    jobs = min(usable_cores(), len(items))
    if jobs <= 1:
        yield from map(function, items)
        return
    # Spawned, not forked: a fork of a process with threads (pyarrow has some) can hang.
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield from in_order(lambda item: pool.submit(function, item), lambda job: job.result(), items, 2 * jobs)
        except BrokenProcessPool as error:
            raise FarshiftError("a worker process was killed (out of memory?); repeat the command") from error
