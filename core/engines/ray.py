"""Items side by side on a Ray cluster: the one that is running (`RAY_ADDRESS`), else a local one of this machine.

The workers need the package and the items' files at the same paths (a shared file system, or files on the Hub).
A worker that is killed costs its items a second try.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

from ..errors import FarshiftError, MissingExtra
from . import in_order

_TRIES = 3
_AHEAD = 64


def _called(function: Callable[[Any], Any], item: Any) -> Any:
    """Ray takes plain functions only, and engines are given others too."""
    return function(item)


def mapped(function: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    if find_spec("ray") is None:
        raise MissingExtra("the engine ray", "ray")
    import ray

    mine = not ray.is_initialized()
    if mine:
        ray.init(address=os.environ.get("RAY_ADDRESS"), include_dashboard=False, log_to_driver=False)
    try:
        task, held = ray.remote(num_cpus=1, max_retries=_TRIES)(_called), ray.put(function)
        start: Callable[[Any], Any] = partial(task.remote, held)
        result: Callable[[Any], Any] = ray.get
        yield from in_order(start, result, items, _AHEAD)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise cause if isinstance(cause, FarshiftError) else FarshiftError(f"ray: {cause!r}") from error
    finally:
        if mine:
            ray.shutdown()
