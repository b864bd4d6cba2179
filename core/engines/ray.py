"""Jobs side by side on a Ray cluster: the one that is running (`RAY_ADDRESS`), else a local one of this machine.

One job a core; on `cuda`, one a GPU. The workers need the package and the jobs' files at the same paths (a disk that
all of them see, or files on the Hub). A job whose worker is killed is started again by Ray, three times at most: one
that keeps checkpoints goes on from its last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from ..errors import FarshiftError, MissingExtra
from . import Needs

_TRIES = 3


@dataclass(frozen=True)
class Ray:
    """A cluster that is connected. task: `_call_job` on one of its workers."""

    workers: int
    task: Any

    def start(self, function: Callable[[Any], Any], job: Any) -> Any:
        return self.task.remote(function, job)

    def first_done(self, started: Sequence[Any]) -> Any:
        import ray

        (done,), _ = ray.wait(list(started), num_returns=1)
        return done

    def result(self, handle: Any) -> Any:
        import ray

        try:
            result, error = ray.get(handle)
        except ray.exceptions.RayTaskError as failed:
            raise failed.cause from failed
        except ray.exceptions.RayError as lost:
            raise FarshiftError("a Ray worker was lost repeatedly: repeat the command") from lost
        if error is not None:
            raise error
        return result

    def stop(self, started: Sequence[Any]) -> None:
        import ray

        for handle in started:
            ray.cancel(handle, force=True)


@contextmanager
def open_engine(needs: Needs) -> Iterator[Ray]:
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
        task = cluster.remote(max_retries=_TRIES, **{f"num_{unit.lower()}s": 1})(_call_job)
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
