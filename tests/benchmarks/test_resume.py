"""Runs: killed ones go on, finished ones are immutable, nothing that was answered is lost."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from pathlib import Path

import farshift as fs
import models
import pytest
from farshift import FarshiftError
from farshift.benchmarks.runs.status import Status, list_statuses
from farshift.core.errors import BadRun, ModelError

ON = "modadd97/xi35"


def test_a_finished_run_is_immutable_and_an_edited_one_is_refused(tmp_path):
    out = tmp_path / "run"
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=out)
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]
    with pytest.raises(BadRun, match=r"a finished run of another request \(budget seeds \[0\], now \[0, 1\]\), which"):
        fs.evaluate(models.Adder(), on=ON, seeds=2, out=out)
    before = (out / "run.toml").read_bytes()
    assert fs.evaluate(models.Adder(), on=ON, seeds=1, out=out).digest == fs.read_run(out).digest, "given back as it is"
    assert (out / "run.toml").read_bytes() == before
    card = (out / "run.toml").read_text()
    (out / "run.toml").write_text(card.replace('name = "Adder"', 'name = "Better"'))
    with pytest.raises(BadRun, match="its digest does not match"):
        fs.score(out)
    (out / "run.toml").write_text(card)
    content = bytearray((out / "predictions.parquet").read_bytes())
    content[100] ^= 1
    (out / "predictions.parquet").write_bytes(content)
    with pytest.raises(BadRun, match=r"predictions\.parquet is missing or was edited"):
        fs.score(out)
    with pytest.raises(BadRun, match="is not a run"):
        fs.score(tmp_path)


@pytest.mark.parametrize(
    ("option", "differing"),
    [
        ({"limit": 3}, "model limit 3, now none"),
        ({"deterministic": True}, "model deterministic True, now none"),
        ({"settings": {"a": {"layers": [64]}}}, "other model settings"),
        ({"budget": "quick"}, "budget name quick, now full"),
    ],
)
def test_a_finished_run_is_not_given_back_where_an_option_is_left_out(tmp_path, option, differing):
    class Adder(models.Adder):
        def __init__(self, seed=0, layers=()):
            super().__init__(0)

    fs.evaluate(Adder, on=ON, seeds=1, out=tmp_path / "r", name="m", code="c", **option)
    with pytest.raises(BadRun, match=re.escape(f"a finished run of another request ({differing}), which")):
        fs.evaluate(Adder, on=ON, seeds=1, out=tmp_path / "r", name="m", code="c")


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(BadRun, match=r"not empty \(it has thesis.tex\)"):
        fs.evaluate(models.Adder(), on=ON, seeds=3, out=tmp_path)


def test_a_plan_under_which_nothing_was_finished_is_replaced(tmp_path):
    with pytest.raises(ModelError):
        fs.evaluate(models.raising, on=ON, seeds=2, out=tmp_path / "run", name="m")
    run = fs.evaluate(models.Adder, on=ON, seeds=3, out=tmp_path / "run", name="m")
    assert run.seeds == (0, 1, 2)


class Layered(models.Adder):
    """Has no `fit`, and breaks on its second seed."""

    def __init__(self, seed, layers=()):
        super().__init__(seed)

    def predict(self, batch):
        if self.seed == 1:
            raise ValueError("not yet")
        return super().predict(batch)


@pytest.mark.parametrize(
    ("first", "then", "other"),
    [
        ({}, {"code": "another"}, "other model code"),
        ({}, {"batch_size": 7}, "model batch_size 512, now 7"),
        ({"settings": {"a": {"layers": [64, 64]}}}, {"settings": {"a": {"layers": [64, 32]}}}, "other model settings"),
    ],
)
def test_answers_that_were_kept_are_never_thrown_away_for_another_plan(tmp_path, first, then, other):
    def evaluate(model=Layered, seeds=2, **options):
        fs.evaluate(model, **{"on": ON, "seeds": seeds, "out": tmp_path / "r", "name": "m"} | options)

    with pytest.raises(ModelError, match="not yet"):
        evaluate(**first)
    with pytest.raises(BadRun, match=rf"unfinished run of another request \(1 seed done; {other}\)"):
        evaluate(**then)
    with pytest.raises(ModelError, match="not yet"):
        evaluate(**first)


SLOW = """
import sys, time, numpy as np, farshift as fs
class Slow:
    def __init__(self, seed): self.seed = seed
    def fit(self, train, val, budget):
        open(sys.argv[2], "a").write(f"{self.seed}\\n")
        if self.seed == 2 and len(sys.argv) > 3: time.sleep(60)
    def predict(self, batch): return (batch["a"] + batch["b"] + (batch["a"] % 5 == self.seed)) % 97
print(fs.score(fs.evaluate(Slow, on="modadd97/xi35", seeds=4, out=sys.argv[1])).json().decode())
"""


@pytest.fixture(scope="module")
def undisturbed(python, tmp_path_factory) -> str:
    """What is printed of the score of a run that nobody stopped."""
    folder = tmp_path_factory.mktemp("undisturbed")
    done = python.run("-c", SLOW, folder / "fresh", folder / "log")
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_with_the_seeds_it_has(python, tmp_path, stop, undisturbed):
    out, log = tmp_path / "run", tmp_path / "log"
    child = subprocess.Popen([sys.executable, "-c", SLOW, out, log, "hang"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and (not log.exists() or "2" not in log.read_text().split()):
        time.sleep(0.02)
    child.send_signal(stop)
    child.wait()
    with pytest.raises(BadRun, match="unfinished \\(2 seeds done\\)"):
        fs.read_run(out)
    again = python.run("-c", SLOW, out, log)
    assert again.returncode == 0, again.stderr
    assert log.read_text().split() == ["0", "1", "2", "2", "3"], "finished seeds are not trained again"
    assert again.stdout == undisturbed


def test_two_processes_on_one_run_train_each_seed_once(python, tmp_path):
    out, log = tmp_path / "run", tmp_path / "log"
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: python.run("-c", SLOW, out, log), range(2)))
    assert [item.returncode for item in done] == [0, 0], "the second one is given the first one's run"
    assert sorted(log.read_text().split()) == ["0", "1", "2", "3"]
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]


def test_a_run_on_a_full_disk_says_so_and_goes_on(tmp_path, monkeypatch):
    import errno

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    fs.load(ON)
    monkeypatch.setattr("farshift.loaders.cache.store.os.fsync", full)
    with pytest.raises(FarshiftError, match="no space left for .*choose another --out"):
        fs.evaluate(models.Adder, on=ON, seeds=2, out=tmp_path / "r")
    monkeypatch.undo()
    assert fs.evaluate(models.Adder, on=ON, seeds=2, out=tmp_path / "r").seeds == (0, 1)


def status_of(folder: Path) -> Status:
    (status,) = list_statuses([folder])
    return status


@pytest.mark.parametrize("trained", [False, True])
def test_only_an_untrained_model_keeps_the_answers_of_a_seed_that_broke(tmp_path, trained):
    """Training twice need not give the same model."""
    model = models.Breaking(11)
    if trained:
        model.fit = lambda train, val, budget: None
    evaluate = partial(fs.evaluate, lambda seed: model, on=ON, seeds=1, out=tmp_path / "r", code="the same")
    with pytest.raises(ModelError, match=r"train, batch 0 \(rows .* raised ConnectionError: gone"):
        evaluate()
    before = sum(model.asked)
    assert status_of(tmp_path / "r").answers == before
    run = evaluate()
    assert sum(model.asked) == run.predictions().num_rows + before * trained, "each row once, but for a training"
    assert fs.score(run).id.value == 1.0


def test_rows_left_open_and_rows_lost_count_as_wrong_and_are_shown(tmp_path):
    def answer(batch):
        answers = ((batch["a"] + batch["b"]) % 97).tolist()
        for row, a in enumerate(batch["a"]):
            if a % 10 == 0:
                answers[row] = None
            elif a % 10 == 1:
                answers[row] = fs.Failed("no answer")
        return answers

    result = fs.score(fs.evaluate(models.Bad(answer), on=ON, seeds=2, out=tmp_path / "r"))
    test = fs.benchmark(ON).part("id_test").numpy(["a"])["a"] % 10
    assert result.id.value == pytest.approx((test > 1).mean(), abs=1e-6)
    counts = {"rows": 2 * len(test), "answered": 2 * (test > 1).sum(), "abstained": 2 * (test == 0).sum()}
    assert asdict(result.answers["id"]) == counts | {"failed": 2 * (test == 1).sum()}
    assert "each counts as wrong" in str(result)


def test_the_state_of_runs_is_read_from_their_folders(tmp_path):
    runs, seen = tmp_path / "runs", []

    class Looks(models.Adder):
        def predict(self, batch):
            seen.append(status_of(runs / "b").state)
            return super().predict(batch)

    with pytest.raises(ModelError):
        fs.evaluate(models.Breaking(5), on=ON, seeds=3, out=runs / "a", batch_size=7)
    fs.evaluate(Looks(), on=ON, seeds=1, out=runs / "b", name="whole")
    a, b = list_statuses([runs])
    assert (a.state, a.seeds, a.of_seeds, a.answers, a.model) == ("stopped", 0, 3, 5 * 7, "Breaking")
    assert (b.state, b.seeds, b.of_seeds, b.model, b.left) == ("finished", 1, 1, "whole", 0.0)
    assert set(seen) == {"running"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(FarshiftError, match="no run in"):
        list_statuses([tmp_path / "empty"])
