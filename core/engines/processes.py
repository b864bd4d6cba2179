"""Items side by side on this machine, one process a core."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..errors import FarshiftError
from . import in_order, usable_cores


def mapped(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    jobs = min(usable_cores(), len(items))
    if jobs <= 1:
        yield from map(function, items)
        return
    # Spawned, not forked: a fork of a process with threads (pyarrow has some) can hang. Ctrl-C reaches the workers too:
    # it ends them without a traceback from each, unless this process is one that ignores it.
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    at_once = (signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL)
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), signal.signal, at_once)
    try:
        yield from in_order(lambda item: pool.submit(function, item), lambda job: job.result(), items, 2 * jobs)
    except BrokenProcessPool as error:
        raise FarshiftError("a worker process was killed (out of memory?); repeat the command") from error
    finally:
        pool.shutdown(cancel_futures=True)
