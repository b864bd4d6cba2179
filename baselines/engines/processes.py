"""Replica groups side by side: one process a core, one torch thread each.

Small networks gain nothing from a second thread, so two replica groups on two cores take half the time of one after
the other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from typing import Any

from ...core.errors import FarshiftError
from . import Engine, Outcome

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@contextmanager
def opened(device: str) -> Iterator[Engine]:
    yield Engine(os.cpu_count() or 1, _run)


def _run(function: Callable[[Any], None], jobs: list[Any]) -> Iterator[Outcome]:
    """Jobs start in their order. Whole replicas are kept when the processes are ended early, broken-off ones are run
    again next time."""
    workers = max(1, min(os.cpu_count() or 1, len(jobs)))
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ |= dict.fromkeys(_THREADS, "1")  # spawned workers inherit it before they load a library
    pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        waiting: dict[Future[None], int] = {pool.submit(function, job): index for index, job in enumerate(jobs)}
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in sorted(done, key=lambda future: waiting[future]):
                yield waiting.pop(future), _error(future)
        pool.shutdown()
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _end_with_parent() -> None:
    """In a worker: end when the parent is gone, even by kill -9, since nobody would read the results; and leave Ctrl-C,
    which a terminal sends to all, to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            wait_for([parent.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _error(future: Future[None]) -> FarshiftError | None:
    try:
        future.result()
    except FarshiftError as error:
        return error
    except BrokenProcessPool:
        return FarshiftError("a worker process died (killed, or out of memory): repeat the command, and it goes on")
    return None
