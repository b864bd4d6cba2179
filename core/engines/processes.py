"""Jobs side by side on this machine, one process a core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.connection import wait as wait_for
from typing import Any

from ..errors import FarshiftError
from . import Engine, Needs, count_usable_cores
from .local import Local

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""What tells NumPy's and torch's libraries how many threads to use, read when they are loaded."""


class Processes:
    """A pool of processes, each begun when a job needs it. Spawned, not forked: a fork of a process with threads
    (pyarrow has some) can hang."""

    def __init__(self, workers: int, threads: int) -> None:
        self.workers = workers
        self.threads = threads
        self._pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_end_with_parent)

    def start(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        try:
            with _limit_threads(self.threads), _defer_interrupt():
                return self._pool.submit(function, job)
        except BrokenProcessPool as error:
            refused: Future[Any] = Future()
            refused.set_exception(error)
            return refused

    def first_done(self, started: Sequence[Future[Any]]) -> Future[Any]:
        done, _ = wait(started, return_when=FIRST_COMPLETED)
        return next(future for future in started if future in done)

    def result(self, handle: Future[Any]) -> Any:
        try:
            return handle.result()
        except BrokenProcessPool as error:
            raise FarshiftError("a worker process died (killed, or out of memory): repeat the command") from error

    def stop(self, started: Sequence[Future[Any]]) -> None:
        for process in list((self._pool._processes or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End the processes once their jobs are done."""
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def open_engine(needs: Needs) -> Iterator[Engine]:
    workers = min(needs.workers or count_usable_cores(), count_usable_cores())
    if workers == 1:
        yield Local()
        return
    engine = Processes(workers, needs.threads)
    try:
        yield engine
    except BaseException:  # Ctrl-C too
        engine.stop(())
        raise
    engine.close()


@contextmanager
def _limit_threads(count: int) -> Iterator[None]:
    """An environment for processes that are begun meanwhile: they read it before they load a library."""
    before = {name: os.environ.get(name) for name in THREADS}
    if count:
        os.environ |= dict.fromkeys(THREADS, str(count))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _defer_interrupt() -> Iterator[None]:
    """Ctrl-C reaches a process that is begun meanwhile once it ignores it, and this one after that."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """In a worker: end when the parent is gone, even by kill -9, since nobody would read the results; and leave Ctrl-C,
    which a terminal sends to all, to the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            wait_for([parent.sentinel])
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
