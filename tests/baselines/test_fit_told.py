"""How far training is: told while it goes on, by the steps of all replicas, with their loss and the time left."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from farshift.baselines.running.sweep import report_file_progress, run_baseline
from farshift.baselines.training import fit_progress_reporter
from farshift.baselines.training.fit_progress_reporter import FitProgressReporter
from farshift.benchmarks.runs.status import FitProgress, Status, get_fit_file, list_statuses, read_fit_progress
from farshift.core.progress import report_to

ON = "vowel/speakers"


class Bars:
    """Listens, and looks at the run folder each time that it hears of steps."""

    def __init__(self, out: Path | None = None) -> None:
        self.out, self.steps, self.notes, self.lines = out, [], [], []  # type: ignore[var-annotated]
        self.states: list[Status] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def advance(self, label: str, done: int, total: int | None, note: str = "") -> None:
        if label == f"mlp on {ON}, steps":
            self.steps.append((done, total))
            self.notes.append(note)
            if self.out is not None:
                self.states += list_statuses([self.out])


@pytest.fixture
def each_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_progress_reporter, "REPORT_INTERVAL", 0.0)
    monkeypatch.setattr(fit_progress_reporter, "WRITE_INTERVAL", 0.0)


@pytest.mark.usefixtures("each_step")
@pytest.mark.parametrize("stack", [0, 1])
def test_a_bar_moves_with_the_steps_of_all_replicas_and_tells_their_loss(tmp_path: Path, stack: int) -> None:
    heard = Bars()
    with report_to(heard):
        run_baseline("mlp", ON, seeds=2, steps=4, stack=stack, out=tmp_path / "r")
    done = [done for done, _ in heard.steps]
    assert {total for _, total in heard.steps} == {8}
    assert done == sorted(done)
    assert {2, 4, 6, 8} <= set(done)
    assert any(note.startswith("loss ") and float(note.removeprefix("loss ")) > 0 for note in heard.notes)
    assert f"mlp on {ON}: training 2 replicas, 4 steps each" in heard.lines


@pytest.mark.usefixtures("each_step")
def test_status_says_what_is_trained_of_a_run_and_the_time_left(tmp_path: Path) -> None:
    heard = Bars(tmp_path / "r")
    with report_to(heard):
        run_baseline("mlp", ON, seeds=2, steps=4, out=tmp_path / "r")
    halfway = next(item for item in heard.states if item.steps == 4)
    assert (halfway.state, halfway.of_steps, halfway.answers) == ("running", 8, 0)
    assert halfway.left is not None
    assert halfway.left >= 0
    assert "50%" in halfway.cells()
    assert not (tmp_path / "r" / "training").exists()


def test_losses_are_read_for_a_report_alone() -> None:
    """A read waits for the device."""
    read = []

    class Losses:
        def __len__(self) -> int:
            return 2

        def mean(self) -> float:
            read.append(1)
            return 0.5

    times = iter([0.0, 0.0, 0.1, 0.2, 0.3, 0.9, 0.9, 1.0])
    output = FitProgressReporter("mlp", 200, clock=lambda: next(times))
    training: Any = SimpleNamespace(stack=[0, 1], total=0, steps=100, losses=Losses())
    output.begin(training, 2)
    for _ in range(3):
        training.total += 1
        output.step(training, 2)
    assert read == []
    training.total += 1
    output.step(training, 2)
    assert read == [1]


def test_replicas_that_left_a_stack_are_trained_and_time_left_is_by_the_pace_of_this_process(tmp_path: Path) -> None:
    now, file = [0.0], get_fit_file(tmp_path, [3, 5])
    output = FitProgressReporter("mlp", 400, file, clock=lambda: now[0])
    training: Any = SimpleNamespace(stack=[0, 1, 2, 3], total=50, steps=100, losses=[])
    output.begin(training, 4)  # taken up at step 50
    now[0], training.stack, training.total = 10.0, [0, 1], 75
    output.step(training, 4)
    result = read_fit_progress(file)
    assert result is not None
    assert (result.done, result.steps, result.first) == (350, 400, 200)
    assert result.remaining_seconds == pytest.approx(10 / 150 * 50)
    output.close()
    assert read_fit_progress(file) is None


def test_trainings_in_other_processes_are_one_bar(tmp_path: Path) -> None:
    heard, seen = Bars(), {}  # type: ignore[var-annotated]
    files = {get_fit_file(tmp_path, [seed]): 100 for seed in (0, 1)}
    label = f"mlp on {ON}, steps"
    with report_to(heard):
        report_file_progress(label, files, seen)
        for path, (done, loss) in zip(files, [(40, 1.0), (10, 2.0)], strict=True):
            FitProgress(done, 100, 0, 1.0, loss).write(path)
        report_file_progress(label, files, seen)
        next(iter(files)).unlink()
        report_file_progress(label, files, seen)
    assert heard.steps == [(50, 200), (110, 200)]
    assert heard.notes == ["loss 1.5", "loss 2"]


@pytest.mark.slow
@pytest.mark.usefixtures("each_step")
def test_processes_tell_as_one_does(tmp_path: Path) -> None:
    heard = Bars()
    with report_to(heard):
        run_baseline("mlp", ON, seeds=2, steps=4, out=tmp_path / "r", engine="processes")
    assert not (tmp_path / "r" / "training").exists()
    assert f"mlp on {ON}: 2 seeds done" in heard.lines
