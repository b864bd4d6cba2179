"""The engine ray, on a real local cluster of two workers."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
from farshift import FarshiftError
from farshift.core.engines import iterate_outcomes, map_jobs, open_engine

pytestmark = pytest.mark.slow
ray = pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    # The workers import what the tests hand them: this file's folder is on their path.
    runtime = {"env_vars": {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=runtime)
    yield
    ray.shutdown()


def test_a_worker_that_is_killed_costs_no_result(tmp_path):
    marker = tmp_path / "killed"

    def once_killed(item: int) -> int:
        if item == 3 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item * item

    assert list(map_jobs("ray", once_killed, list(range(6)))) == [item * item for item in range(6)]
    assert marker.exists()


def test_an_error_of_a_worker_is_the_error_of_the_whole(tmp_path):
    def refuse(item: int) -> int:
        raise FarshiftError(f"item {item} cannot be read")

    with pytest.raises(FarshiftError, match="item 0 cannot be read"):
        list(map_jobs("ray", refuse, [0, 1]))


def test_an_error_of_one_job_is_its_outcome(tmp_path):
    def refuse_two(item: int) -> int:
        if item == 2:
            raise FarshiftError("2 cannot be read")
        return item

    with open_engine("ray") as engine:
        outcomes = sorted(iterate_outcomes(engine, refuse_two, range(7)), key=lambda outcome: outcome.position)
    assert [outcome.result for outcome in outcomes] == [0, 1, None, 3, 4, 5, 6]
    assert [str(outcome.error) for outcome in outcomes if outcome.error] == ["2 cannot be read"]
