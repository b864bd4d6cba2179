"""Engines: the same results wherever jobs run; no more is started than may be held; nothing outlives its caller;
a training has a thread for each free core."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
import torch
from farshift import FarshiftError
from farshift.core import engines
from farshift.core.engines import Engine, Local, Needs, iterate_outcomes, map_jobs, open_engine
from farshift.core.errors import UnknownName


def cube(number: int) -> int:
    if number == 13:
        raise FarshiftError("13 brings bad luck")
    if number == 14:
        raise ZeroDivisionError("a fault of the program")
    return number**3


def thread_settings(_: int) -> str | None:
    return os.environ.get("OMP_NUM_THREADS")


def process_id(_: int) -> int:
    return os.getpid()


def killed(number: int) -> int:
    if number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.fixture(params=["local", "processes"])
def name(request):
    return request.param


def test_results_come_in_order_and_the_first_error_ends_it(name):
    assert list(map_jobs(cube, list(range(9)), engine=name)) == [number**3 for number in range(9)]
    assert list(map_jobs(cube, [], engine=name)) == []
    with pytest.raises(FarshiftError, match="13 brings bad luck"):
        list(map_jobs(cube, [1, 13, 2], engine=name))


def test_as_completed_an_error_is_an_outcome_and_the_other_jobs_go_on(name):
    with open_engine(name) as engine:
        result = sorted(iterate_outcomes(engine, cube, [1, 13, *range(2, 9)]), key=lambda outcome: outcome.position)
    assert [outcome.position for outcome in result] == list(range(9))
    assert [str(outcome.error) for outcome in result if outcome.error] == ["13 brings bad luck"]
    assert [outcome.result for outcome in result] == [1, None, *(number**3 for number in range(2, 9))]


def test_a_fault_of_the_program_is_no_outcome(name):
    with pytest.raises(ZeroDivisionError), open_engine(name) as engine:
        list(iterate_outcomes(engine, cube, [14, 1]))


class Counting(Engine):
    """Counts the jobs that are started and not taken."""

    def __init__(self, workers: int) -> None:
        self.workers, self.ahead = workers, 2 * workers
        self.held = self.most = 0
        self.stopped = False

    def start(self, function: Callable[[Any], Any], job: Any) -> Future[Any]:
        self.held += 1
        self.most = max(self.most, self.held)
        return Local().start(function, job)

    def take(self, job: Future[Any]) -> Any:
        self.held -= 1
        return job.result()

    def stop(self) -> None:
        self.stopped = True


@pytest.mark.parametrize("workers", [1, 3])
def test_no_more_is_started_than_may_be_held(workers):
    engine = Counting(workers)
    outcomes = list(iterate_outcomes(engine, cube, range(-9, 0), in_order=True))
    assert outcomes == [(place, number**3, None) for place, number in enumerate(range(-9, 0))]
    assert sorted(outcome.position for outcome in iterate_outcomes(engine, cube, range(-9, 0))) == list(range(9))
    assert engine.most == 2 * workers
    assert not engine.stopped


@pytest.mark.parametrize("in_order", [True, False])
def test_a_caller_that_stops_early_ends_what_is_under_way(in_order):
    engine = Counting(2)
    results = iterate_outcomes(engine, cube, range(9), in_order)
    next(results)
    results.close()
    assert engine.stopped
    assert engine.held == 3


def test_each_process_takes_as_many_threads_as_its_jobs_need(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert set(map_jobs(thread_settings, [0, 1], Needs(threads=1))) == {"1"}
    assert set(map_jobs(thread_settings, [0, 1])) == {"3"}
    assert os.environ["OMP_NUM_THREADS"] == "3"


def test_one_job_is_done_in_this_process_and_one_worker_is_this_process():
    assert list(map_jobs(process_id, [0])) == [os.getpid()]
    assert set(map_jobs(process_id, [0, 1, 2], Needs(workers=1))) == {os.getpid()}


def test_a_worker_that_dies_is_one_error_of_every_job_that_is_left():
    with open_engine("processes", Needs(workers=2)) as engine:
        if engine.workers == 1:
            pytest.skip("one core: there are no workers")
        outcomes = list(iterate_outcomes(engine, killed, [1] * 9))
    output = {str(outcome.error) for outcome in outcomes}
    assert output == {"a worker process died (killed, or out of memory): repeat the command"}
    assert sorted(outcome.position for outcome in outcomes) == list(range(9))


def test_an_unknown_engine_is_refused_before_any_work():
    with pytest.raises(UnknownName, match="no engine named 'mine': choose from local, processes, ray"):
        map_jobs(cube, [2, 3], engine="mine")


INTERRUPTED = """
import time
from pathlib import Path
from farshift.core.engines import map_jobs
def wait(folder):
    (Path(folder) / "at work").touch()
    time.sleep(60)
if __name__ == "__main__":
    print("begun", flush=True)
    try:
        list(map_jobs(wait, [str(Path(__file__).parent)] * 6))
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_ctrl_c_ends_worker_processes_at_once_and_silently(tmp_path):
    (tmp_path / "script.py").write_text(INTERRUPTED)
    pipe = subprocess.PIPE
    command = [sys.executable, tmp_path / "script.py"]
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        assert process.stdout.readline() == "begun\n"
        while not (tmp_path / "at work").exists():
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        out, errors = process.communicate(timeout=120)
    assert (out, "Traceback" in errors) == ("interrupted\n", False)


@pytest.fixture
def cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cores, and no number of threads in the environment."""
    monkeypatch.setattr(engines, "count_usable_cores", lambda: 4)
    for name in engines.THREADS:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(("busy", "count"), [(0.0, 0), (0.4, 0), (1.2, 3), (2.9, 1), (4.0, 1)])
def test_a_training_has_a_thread_for_each_free_core(cores: None, busy: float, count: int) -> None:
    assert engines.choose_threads(busy) == count
    assert engines.describe_busy_cores(busy).startswith(f"{busy} of 4 cores are busy" if count else "")


def test_a_number_of_threads_in_the_environment_stays(cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert engines.choose_threads(4.0) == 0
    assert engines.describe_busy_cores(4.0) == ""


def test_the_cores_in_use_are_measured_on_every_system(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.0 <= engines.measure_busy_cores() <= engines.count_usable_cores()

    def refuse() -> tuple[int, int]:
        raise FileNotFoundError("/proc/stat")

    monkeypatch.setattr(engines, "_read_processor_times", refuse)
    assert engines.measure_busy_cores() == 0.0


def test_a_run_on_busy_cores_says_how_many_threads_it_takes(cores, monkeypatch, command, tmp_path) -> None:
    monkeypatch.setattr(engines, "measure_busy_cores", lambda: 3.4)
    before = torch.get_num_threads()
    given = ("run", "mlp", "--on", "vowel/speakers", "--seeds", "1", "--steps", "2")
    done = command(*given, "--out", tmp_path / "run")
    assert "3.4 of 4 cores are busy: training takes 1 thread (OMP_NUM_THREADS sets the number)" in done.stderr
    assert torch.get_num_threads() == before
    assert "3.4 of 4 cores are busy" in command(*given, "--dry-run").stderr
    assert "3.4 of 4 cores are busy" in " ".join(command("doctor").stdout.split())
