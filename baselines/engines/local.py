"""One replica group after the other, in this process, with all of torch's threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...core.errors import FarshiftError
from . import Engine, Outcome


@contextmanager
def opened(device: str) -> Iterator[Engine]:
    yield Engine(1, _run)


def _run(function: Callable[[Any], None], jobs: list[Any]) -> Iterator[Outcome]:
    for index, job in enumerate(jobs):
        try:
            function(job)
        except FarshiftError as error:
            yield index, error
        else:
            yield index, None
