"""Progress on stderr: bars that fit a terminal, and elsewhere a plain line now and then."""

from __future__ import annotations

from threading import Event

import farshift as fs
import pytest
from farshift.cli.progress import Lines, make_progress_bars
from farshift.core import progress
from rich.console import Console


def told(*heard: tuple[float, int], total: int | None = 1000, note: str = "") -> list[str]:
    """What plain lines say of work that was heard of at these seconds, each with how far it was."""
    output: list[str] = []
    times = iter([seconds for seconds, _ in heard])
    lines = Lines(output.append, clock=lambda: next(times))
    for _, done in heard:
        lines.advance("mlp, steps", done, total, note)
    return output


def test_work_of_a_few_seconds_has_no_line() -> None:
    assert told((0, 0), (3, 500), (9, 1000)) == []


def test_a_line_has_what_is_done_the_pace_the_time_left_and_the_loss() -> None:
    assert told((0, 0), (20, 400), note="loss 0.5") == ["mlp, steps: 400 of 1,000 (40%), 20/s, 30 s left, loss 0.5"]
    assert told((0, 200), (20, 400)) == ["mlp, steps: 400 of 1,000 (40%), 10/s, 1 min 0 s left"]


def test_lines_come_at_each_tenth_but_not_within_ten_seconds_and_at_least_each_minute() -> None:
    quick = told(*((seconds, 30 * seconds) for seconds in range(33)), (34, 1000))
    assert [line.split(" of ")[0].split()[-1] for line in quick] == ["300", "600", "900", "1,000"]
    slow = told(*((seconds, seconds // 10) for seconds in range(0, 200, 5)))
    assert [line.split(" of ")[0].split()[-1] for line in slow] == ["6", "12", "18"]


def test_work_whose_end_is_not_known_has_a_line_each_minute() -> None:
    assert told((0, 0), (30, 300), (61, 610), total=None) == ["mlp, steps: 610, 10/s"]


def shown(width: int) -> str:
    console = Console(width=width, force_terminal=True, color_system=None)
    progress = make_progress_bars(console)
    task = progress.add_task("group-dro on colored_mnist/minus_90, steps", total=250_000, completed=4000, note="")
    progress.update(task, completed=5000, note="loss 0.4123")
    with console.capture() as stored:
        console.print(progress.get_renderable())
    return stored.get()


def test_a_bar_in_a_narrow_terminal_cuts_the_name_and_no_number() -> None:
    narrow, wide = shown(80), shown(140)
    for text in (narrow, wide):
        assert "5000/250000" in text
        assert "loss 0.4123" in text
        assert len(text.splitlines()) == 1
    assert "group-dro on c" in narrow
    assert "group-dro on colored_mnist/minus_90, steps" in wide


@pytest.mark.slow
def test_a_run_without_a_terminal_says_what_begins_and_what_is_done(farshift, tmp_path) -> None:
    done = farshift("run", "mlp", "--on", "vowel/speakers", "--steps", "2", "--seeds", "1", "--out", tmp_path / "r")
    assert "mlp on vowel/speakers: training 1 replica, 2 steps each\n" in done.stderr
    assert "mlp on vowel/speakers: 1 seed done\n" in done.stderr


def test_a_fit_has_a_line_within_seconds_and_then_each_minute(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(progress, "SOON", 0.01)
    heard, line = [], Event()

    class Listener:
        def say(self, text: str) -> None:
            if "fit has run" in text:
                heard.append(text)
                line.set()

        def advance(self, label: str, done: int, total: int | None, note: str = "") -> None:
            pass

    class Slow:
        def fit(self, train, val, budget):
            for _ in train.batches(64):
                pass
            assert line.wait(60)

        def predict(self, batch):
            return [0] * len(batch["features"])

    with progress.report_to(Listener()):
        fs.evaluate(Slow, on="vowel/speakers", budget="quick", seeds=1, out=tmp_path / "run")
    assert heard[0] == "vowel/speakers, seed 0: fit has run for under a second"
