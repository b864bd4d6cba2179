"""Engines: where replicas run; one file each, with `run(function, jobs)`.

`function` is importable by name and `jobs` are picklable; yields `(index, error)` as jobs end, `error` None where
all went well. Results do not depend on the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ...splits.errors import FarshiftError
from ...splits.plugins import module

Outcome = tuple[int, FarshiftError | None]


def engine(name: str) -> Callable[[Callable[[Any], None], list[Any]], Iterator[Outcome]]:
    """The `run` of the engine called `name`."""
    run: Callable[[Callable[[Any], None], list[Any]], Iterator[Outcome]] = module(
        "baselines/engines", name, "engine"
    ).run
    return run
