"""Engines: where jobs run; one file each, with `open_engine(needs)`, a context that gives an `Engine`.

A job's function is importable by name; jobs and results are picklable. Results do not depend on the engine.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from ..errors import FarshiftError
from ..plugins import load_module

J = TypeVar("J")
R = TypeVar("R")


@dataclass(frozen=True)
class Needs:
    """What jobs need. device: where they compute. workers: the most that run side by side, 0 for as many as there are.
    threads: how many each takes for its arithmetic, 0 for the library's own choice."""

    device: str = "cpu"
    workers: int = 0
    threads: int = 0


class Engine(Protocol):
    """Runs jobs. What `start` gives stands for a job that was started, and is passed to the other methods."""

    @property
    def workers(self) -> int:
        """How many jobs run side by side."""

    def start(self, function: Callable[[Any], Any], job: Any) -> Any:
        """Begin `function(job)`."""

    def first_done(self, started: Sequence[Any]) -> Any:
        """Wait until one of the started jobs is done, and say which."""

    def result(self, handle: Any) -> Any:
        """Wait for a job; its result. Raises what the job raised, or `FarshiftError` where its worker was lost."""

    def stop(self, started: Sequence[Any]) -> None:
        """End jobs at once. The engine starts none after that."""


class Outcome(NamedTuple):
    """How a job ended: its place among the jobs, its result, or the error that it raised."""

    position: int
    result: Any
    error: FarshiftError | None


def open_engine(name: str, needs: Needs | None = None) -> AbstractContextManager[Engine]:
    """The engine called `name` (local, processes, ray, or one's own), while the context lasts."""
    engine: AbstractContextManager[Engine] = load_module("core/engines", name, "engine").open_engine(needs or Needs())
    return engine


def check_engine(name: str) -> None:
    """Raises `UnknownName` where there is no engine called `name`."""
    load_module("core/engines", name, "engine")


def count_usable_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_jobs(name: str, function: Callable[[J], R], jobs: Sequence[J], needs: Needs | None = None) -> Iterator[R]:
    """The results of `function` on jobs, in their order, from the engine called `name`. A single job is done here.

    Only a few results are held that the caller has not taken yet. The first error ends it."""
    check_engine(name)
    return map(function, jobs) if len(jobs) < 2 else _map_each(name, function, jobs, needs)


def _map_each(name: str, function: Callable[[J], R], jobs: Sequence[J], needs: Needs | None) -> Iterator[R]:
    with open_engine(name, needs) as engine:
        yield from run_in_order(engine, function, jobs)


def run_in_order(engine: Engine, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[R]:
    """The results of jobs in their order, of which at most two for each worker are started and not yet taken. What is
    under way ends when the caller stops early."""
    started: deque[Any] = deque()
    try:
        for job in jobs:
            if len(started) == 2 * engine.workers:
                yield engine.result(started.popleft())
            started.append(engine.start(function, job))
        while started:
            yield engine.result(started.popleft())
    finally:
        if started:
            engine.stop(started)


def iterate_outcomes(engine: Engine, function: Callable[[J], R], jobs: Sequence[J]) -> Iterator[Outcome]:
    """The outcomes of jobs as they end; jobs start in their order. A `FarshiftError` is an outcome, and does not stop
    the other jobs; any other error does. What is under way ends when the caller stops early."""
    started: list[tuple[int, Any]] = []
    remaining = iter(enumerate(jobs))
    try:
        while True:
            while len(started) < 2 * engine.workers and (following := next(remaining, None)) is not None:
                position, job = following
                started.append((position, engine.start(function, job)))
            if not started:
                return
            done = engine.first_done([handle for _, handle in started])
            position = next(position for position, handle in started if handle is done)
            try:
                outcome = Outcome(position, engine.result(done), None)
            except FarshiftError as error:
                outcome = Outcome(position, None, error)
            started.remove((position, done))
            yield outcome
    finally:
        if started:
            engine.stop([handle for _, handle in started])
