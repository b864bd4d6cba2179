"""Engines: where replica groups run; one file each, with `opened(device)`, a context that gives an `Engine`.

Results do not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from ...core.errors import FarshiftError
from ...core.plugins import module

Outcome = tuple[int, FarshiftError | None]


@dataclass(frozen=True)
class Engine:
    """workers: how many jobs run side by side.

    run: from a function that is importable by name and picklable jobs to `(index, error)` as jobs end, `error` None
    where all went well. When the caller stops early (Ctrl-C), jobs under way are ended at once."""

    workers: int
    run: Callable[[Callable[[Any], None], list[Any]], Iterator[Outcome]]


def opened(name: str, device: str) -> AbstractContextManager[Engine]:
    """The engine called `name`, for jobs on a device, while the context lasts."""
    found: AbstractContextManager[Engine] = module("baselines/engines", name, "engine").opened(device)
    return found
