"""One job after the other, in this process, with all the threads that its libraries take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from . import Needs

Job = Callable[[], Any]


class Local:
    """A job runs when its result is taken."""

    workers = 1

    def start(self, function: Callable[[Any], Any], job: Any) -> Job:
        return partial(function, job)

    def first_done(self, started: Sequence[Job]) -> Job:
        return started[0]

    def result(self, handle: Job) -> Any:
        return handle()

    def stop(self, started: Sequence[Job]) -> None:
        """No job is under way."""


@contextmanager
def open_engine(needs: Needs) -> Iterator[Local]:
    yield Local()
