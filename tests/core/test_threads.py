"""Threads of a training on cores that other processes use."""

from __future__ import annotations

import pytest
import torch
from farshift.core import engines


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
