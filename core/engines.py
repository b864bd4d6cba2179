"""Engines, where jobs run: in this process (`local`), in one process a core (`processes`), on a Ray cluster (`ray`);
and how many threads a training takes on a machine that other processes use too.

A job's function is importable by name; jobs and results are picklable. Results do not depend on the engine.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from .errors import FarshiftError, MissingExtra, UnknownName
from .progress import log_message

J = TypeVar("J")
R = TypeVar("R")

ENGINES = ("local", "processes", "ray")

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""What tells NumPy's and torch's libraries how many threads to use, read when they are loaded."""


@dataclass(frozen=True)
class Needs:
    """What jobs need. device: where they compute. workers: the most that run side by side, 0 for as many as there are.
    threads: how many each takes for its arithmetic, 0 for the library's own choice."""

    device: str = "cpu"
    workers: int = 0
    threads: int = 0


class JobOutcome(NamedTuple):
    """How a job ended: its place among the jobs, its result, or the error that it raised."""

    position: int
    result: Any
    error: FarshiftError | None


class Engine(ABC):
    """Runs jobs, of which `workers` run side by side, and `ahead` may be started and not yet taken."""

    workers = 1
    ahead = 1

    @abstractmethod
    def start(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        """Begin `function(job)`."""

    @abstractmethod
    def stop(self) -> None:
        """End jobs at once. The engine starts none after that."""

    def take(self, job: Future[Any]) -> Any:
        """Wait for a job; its result. Raises what the job raised, or `FarshiftError` where its worker was lost."""
        return job.result()


def map_jobs(
    function: Callable[[J], R], jobs: Sequence[J], needs: Needs | None = None, engine: str = "processes"
) -> Iterator[R]:
    """The results of `function` on jobs, in their order, from the engine of that name. A single job is done here.

    Only a few results are held that the caller has not taken yet. The first error ends it."""
    check_engine(engine)

    def map_in_order() -> Iterator[R]:
        with open_engine(engine, needs) as opened:
            for outcome in iterate_outcomes(opened, function, jobs, in_order=True):
                if outcome.error is not None:
                    raise outcome.error
                yield outcome.result

    return map(function, jobs) if len(jobs) < 2 else map_in_order()


def map_in_threads(function: Callable[[J], R], pieces: Iterable[J]) -> list[R]:
    """`function` of each piece, in their order, by the threads of this process, as many at a time as there are cores:
    for functions of Arrow or NumPy, which let other threads run, and nothing else."""
    with ThreadPoolExecutor(count_usable_cores()) as pool:
        return list(pool.map(function, pieces))


def iterate_outcomes(
    engine: Engine, function: Callable[[J], R], jobs: Iterable[J], in_order: bool = False
) -> Iterator[JobOutcome]:
    """The outcomes of jobs as they end, or in their order; jobs start in their order. A `FarshiftError` is an outcome,
    and does not stop the other jobs; any other error does. What is under way ends when the caller stops early."""
    started: dict[Future[Any], int] = {}
    remaining = enumerate(jobs)
    try:
        while True:
            for position, job in islice(remaining, engine.ahead - len(started)):
                started[engine.start(function, job)] = position
            if not started:
                return
            done = started if in_order else wait(started, return_when=FIRST_COMPLETED).done
            first = next(future for future in started if future in done)
            try:
                outcome = JobOutcome(started[first], engine.take(first), None)
            except FarshiftError as error:
                outcome = JobOutcome(started[first], None, error)
            del started[first]
            yield outcome
    finally:
        if started:
            engine.stop()


def check_engine(name: str) -> None:
    """Raises `UnknownName` where there is no engine called `name`."""
    if name not in ENGINES:
        raise UnknownName("engine", name, ENGINES)


@contextmanager
def open_engine(name: str, needs: Needs | None = None) -> Iterator[Engine]:
    """The engine called `name`, while the context lasts."""
    check_engine(name)
    needs = needs or Needs()
    workers = min(needs.workers or count_usable_cores(), count_usable_cores())
    if name == "ray":
        with _connect_ray(needs) as cluster:
            yield cluster
    elif name == "local" or workers == 1:
        yield Local()
    else:
        engine = Processes(workers, needs.threads)
        try:
            yield engine
        except BaseException:  # Ctrl-C too
            engine.stop()
            raise
        engine.close()


def count_usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Local(Engine):
    """One job after the other, in this process, with all the threads that its libraries take."""

    def start(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        done: Future[Any] = Future()
        try:
            done.set_result(function(job))
        except Exception as error:
            done.set_exception(error)
        return done

    def stop(self) -> None:
        """No job is under way."""


class Processes(Engine):
    """A pool of processes, each begun when a job needs it. Spawned, not forked: a fork of a process with threads
    (pyarrow has some) can hang."""

    def __init__(self, workers: int, threads: int) -> None:
        self.workers, self.ahead, self.threads = workers, 2 * workers, threads
        self._pool = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), initializer=_end_with_parent)

    def start(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        try:
            with _set_thread_variables(self.threads), _defer_interrupt():
                return self._pool.submit(function, job)
        except BrokenProcessPool as error:
            refused: Future[Any] = Future()
            refused.set_exception(error)
            return refused

    def take(self, job: Future[Any]) -> Any:
        try:
            return job.result()
        except BrokenProcessPool as error:
            raise FarshiftError("a worker process died (killed, or out of memory): repeat the command") from error

    def stop(self) -> None:
        for process in list((self._pool._processes or {}).values()):
            process.terminate()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """End the processes once their jobs are done."""
        self._pool.shutdown(cancel_futures=True)


@contextmanager
def _set_thread_variables(count: int) -> Iterator[None]:
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


class Ray(Engine):
    """A Ray cluster that is connected: one job a core; on `cuda`, one a GPU. The workers need the package and the jobs'
    files at the same paths (a disk that all of them see, or files on the Hub). A job whose worker is killed is started
    again by Ray, three times at most: one that keeps checkpoints goes on from its last. task: `_call_job` there."""

    def __init__(self, workers: int, task: Any) -> None:
        self.workers, self.ahead, self._task = workers, 2 * workers, task
        self._started: dict[Future[Any], Any] = {}

    def start(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        reference = self._task.remote(function, job)
        future: Future[Any] = reference.future()
        self._started[future] = reference
        return future

    def take(self, job: Future[Any]) -> Any:
        import ray

        try:
            result, error = job.result()
        except ray.exceptions.RayTaskError as failed:
            raise failed.cause from failed
        except ray.exceptions.RayError as lost:
            raise FarshiftError("a Ray worker was lost repeatedly: repeat the command") from lost
        finally:
            self._started.pop(job, None)
        if error is not None:
            raise error
        return result

    def stop(self) -> None:
        import ray

        for reference in self._started.values():
            ray.cancel(reference, force=True)


@contextmanager
def _connect_ray(needs: Needs) -> Iterator[Ray]:
    """The cluster that is running (`RAY_ADDRESS`), else a local one of this machine."""
    if find_spec("ray") is None:
        raise MissingExtra("the engine ray", "ray")
    import ray

    owns_cluster = not ray.is_initialized()
    if owns_cluster:
        # Workers of a cluster that runs already have an environment of their own.
        settings = {name: value for name, value in os.environ.items() if name.startswith("FARSHIFT_")}
        address = os.environ.get("RAY_ADDRESS")
        try:
            ray.init(address, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": settings})
        except ConnectionError as error:
            raise FarshiftError(f"no Ray cluster is reachable at {address}: start one, or unset RAY_ADDRESS") from error
    try:
        unit = "GPU" if needs.device.startswith("cuda") else "CPU"
        cluster: Any = ray  # of its functions some have no types, and others too narrow ones
        workers = int(cluster.cluster_resources().get(unit, 0))
        if workers < 1:
            raise FarshiftError(
                f"the Ray cluster has no {unit}, which --device {needs.device} needs: choose another device"
            )
        task = cluster.remote(max_retries=3, **{f"num_{unit.lower()}s": 1})(_call_job)
        yield Ray(min(needs.workers or workers, workers), task)
    finally:
        if owns_cluster:
            ray.shutdown()


def _call_job(function: Callable[[Any], Any], job: Any) -> tuple[Any, FarshiftError | None]:
    """What a job fails with is a result: Ray tries again only where a worker is lost."""
    try:
        return function(job), None
    except FarshiftError as error:
        return None, error


_SAMPLE = 0.25
"""Seconds for which the use of the cores is observed."""


def measure_busy_cores() -> float:
    """The mean number of this process's cores that are in use, observed for a moment in which it waits; 0 where the
    system does not say."""
    try:
        before = _read_processor_times()
        time.sleep(_SAMPLE)
        after = _read_processor_times()
    except OSError:
        return 0.0
    busy, total = after[0] - before[0], after[1] - before[1]
    return count_usable_cores() * busy / total if total else 0.0


def _read_processor_times() -> tuple[int, int]:
    """The busy and all time of all processors, in ticks (proc(5), /proc/stat)."""
    ticks = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)  # less idle and iowait


def choose_threads(busy: float) -> int:
    """The number of threads for the cores that are free, at least one; 0, the libraries' own choice, if all are free or
    the environment sets the number."""
    if any(os.environ.get(name) for name in THREADS):
        return 0
    cores = count_usable_cores()
    free = max(1, round(cores - busy))
    return free if free < cores else 0


def describe_busy_cores(busy: float) -> str:
    """The use of the cores, and with how many threads a training then begins; empty if all cores are free."""
    threads = choose_threads(busy)
    if not threads:
        return ""
    return (
        f"{busy:.1f} of {count_usable_cores()} cores are busy: training takes {threads} thread{'s' * (threads > 1)} "
        "(OMP_NUM_THREADS sets the number)"
    )


@contextmanager
def limit_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads while the context lasts; 0: as many as before."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(min(count or before, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def use_free_cores() -> Iterator[None]:
    """Let torch use the cores that are free now while the context lasts, and say so if they are not all. Threads wait
    for each other at every operation: on fewer free cores, one thread is many times faster than two."""
    busy = measure_busy_cores()
    if text := describe_busy_cores(busy):
        log_message(text)
    with limit_threads(choose_threads(busy)):
        yield
