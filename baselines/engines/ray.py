"""Replica groups on a Ray cluster: the one that is running (`RAY_ADDRESS`), else a local one of this machine.

One replica group a core; on `cuda`, one a GPU. The workers need the package at the same path, and the run folder on
a disk that all of them see: their checkpoints lie in it. A worker that is killed costs its replica group what it
trained since its last checkpoint; Ray starts it again, three times at most."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any

from ...core.errors import FarshiftError, MissingExtra
from . import Engine, Outcome

_TRIES = 3


@contextmanager
def opened(device: str) -> Iterator[Engine]:
    if find_spec("ray") is None:
        raise MissingExtra("the engine ray", "ray")
    import ray

    mine = not ray.is_initialized()
    if mine:
        # Workers of a cluster that runs already have an environment of their own.
        settings = {name: value for name, value in os.environ.items() if name.startswith("FARSHIFT_")}
        address = os.environ.get("RAY_ADDRESS")
        try:
            ray.init(address, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": settings})
        except ConnectionError as error:
            raise FarshiftError(f"no Ray cluster answers at {address}: start one, or unset RAY_ADDRESS") from error
    try:
        needed = "GPU" if device.startswith("cuda") else "CPU"
        cluster: Any = ray  # of its functions some have no types, and others too narrow ones
        workers = int(cluster.cluster_resources().get(needed, 0))
        if workers < 1:
            raise FarshiftError(f"the Ray cluster has no {needed}, which --device {device} needs: choose another")
        task = cluster.remote(max_retries=_TRIES, **{f"num_{needed.lower()}s": 1})(_called)
        yield Engine(workers, partial(_run, task))
    finally:
        if mine:
            ray.shutdown()


def _run(task: Any, function: Callable[[Any], None], jobs: list[Any]) -> Iterator[Outcome]:
    import ray

    held = ray.put(function)
    waiting = {task.remote(held, job): index for index, job in enumerate(jobs)}
    try:
        while waiting:
            (reference,), _ = ray.wait(list(waiting), num_returns=1)
            try:
                error = ray.get(reference)
            except ray.exceptions.RayTaskError as failed:
                raise failed.cause from failed
            except ray.exceptions.RayError:
                error = FarshiftError("a Ray worker was lost again and again: repeat the command, and it goes on")
            yield waiting.pop(reference), error
    finally:
        for reference in waiting:
            ray.cancel(reference, force=True)


def _called(function: Callable[[Any], None], job: Any) -> FarshiftError | None:
    """What a replica fails with is a result: Ray tries again only where a worker is lost."""
    try:
        function(job)
    except FarshiftError as error:
        return error
    return None
