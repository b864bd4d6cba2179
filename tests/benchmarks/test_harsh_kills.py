"""kill -9 at any step, damage, and processes that come late: nothing that was kept is lost, no two trainings mixed."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.runs import run_folder
from farshift.benchmarks.runs.run_folder import RunFolder
from farshift.benchmarks.runs.status import list_statuses
from farshift.benchmarks.statistics.interval import NotAvailable
from farshift.core.errors import BadRun, ModelError
from farshift.core.world import World
from warm_python import Python

pytestmark = pytest.mark.attack("disk", "kill -9 of an evaluation at any step; damaged answer files")

ON = "modadd97/xi35"

KILLED_ANYWHERE = """
import os, shutil, sys
from pathlib import Path
import numpy as np, farshift as fs, pyarrow.parquet

class Drawn:
    '''Every training gives another model, which answers alike to all rows.'''
    def fit(self, train, val, budget): self.answer = int.from_bytes(os.urandom(2), "big") % 97
    def checkpoints(self): yield from (("first", self), ("last", self))
    def predict(self, batch): return np.full(len(batch["a"]), self.answer)

class Fixed:
    def predict(self, batch): return (batch["a"] + batch["b"]) % 97

model, out, first, step = {"Drawn": Drawn, "Fixed": Fixed}[sys.argv[1]], Path(sys.argv[2]), *map(int, sys.argv[3:5])
settings = {name: {} for name in sys.argv[5]}
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "shutil.rmtree"}

def evaluate(kill_before):
    '''In a process of its own, that dies before its change number `kill_before` of the run folder.'''
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    left = [kill_before]
    def hook(event, arguments):
        if event in CHANGES and str(out) in str(arguments[0]):
            left[0] -= 1
            if left[0] == 0: os.kill(os.getpid(), 9)
    sys.addaudithook(hook)
    try:
        fs.evaluate(model, on="modadd97/xi35", seeds=2, out=out, name="m", settings=settings, batch_size=5000)
    except BaseException as error:
        print(error); os._exit(1)
    os._exit(0)

number = first
while True:
    shutil.rmtree(out, ignore_errors=True)
    died = [evaluate(number) for _ in range(2)]  # the second time in what the first one left
    end = evaluate(-1)
    assert end == 0, (number, end)
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"], number
    if number % 10 == 1 or died[0] == 0:
        fs.score(out)
    table = fs.read_run(out).predictions()
    if model is Drawn:
        trained = {(seed, name.split("/")[0]) for seed, name in zip(table["seed"].to_pylist(), table["candidate"].to_pylist())}
        answers = set(zip(table["seed"].to_pylist(), [name.split("/")[0] for name in table["candidate"].to_pylist()], table["prediction"].to_pylist()))
        assert len(answers) == len(trained) == 2 * len(settings), (number, sorted(answers))
    print(number, died)
    if died[0] == 0:
        break
    number += step
"""


def killed_at(python: Python, tmp_path: Path, model: str, first: int, step: int, settings: str) -> int:
    """At how many steps a run was killed, each time finished by repeating it. settings: a letter for each."""
    fs.evaluate(models.Adder(), on=ON, seeds=1)  # so that what follows finds the benchmark prepared
    done = python.run("-c", KILLED_ANYWHERE, model, tmp_path / "r", first, step, settings)
    assert done.returncode == 0, (done.stdout[-500:], done.stderr[-3000:])
    return len(done.stdout.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("model", ["Drawn", "Fixed"])
def test_a_run_that_is_killed_at_any_step_is_finished_by_repeating_it(python, tmp_path, model):
    assert killed_at(python, tmp_path, model, 1, 1, "a") > 30


class Drawn:
    """Every training gives another model, which answers alike to all rows; the first of seed 1 fails."""

    breaks: bool
    trainings: list[int]

    def __init__(self, seed):
        self.seed = seed

    def fit(self, train, val, budget):
        self.trainings.append(self.seed)
        self.answer = len(self.trainings)

    def predict(self, batch):
        if self.seed == 1 and self.breaks:
            Drawn.breaks = False
            raise ValueError("not today")
        return np.full(len(batch["a"]), self.answer)


@pytest.fixture
def half_done(tmp_path) -> Path:
    """A run of a trained model with one of two seeds done."""
    Drawn.breaks, Drawn.trainings = True, []
    with pytest.raises(ModelError, match="not today"):
        fs.evaluate(Drawn, on=ON, seeds=2, out=tmp_path / "r", name="m")
    return tmp_path / "r"


@pytest.mark.parametrize("damage", [b"", b"nonsense", None], ids=["emptied", "overwritten", "removed"])
def test_a_trained_models_damaged_answers_are_all_made_again_by_one_new_training(half_done, damage):
    shard = next((half_done / "shards" / "seed-0").rglob("train.*.arrow"))
    shard.unlink() if damage is None else shard.write_bytes(damage)
    run = fs.evaluate(Drawn, on=ON, seeds=2, out=half_done, name="m")
    assert Drawn.trainings == [0, 1, 0, 1]
    rows = run.predictions().to_pylist()
    assert {row["prediction"] for row in rows if row["seed"] == 0} == {3}, "not one row of the first training"


def test_a_model_whose_answers_vary_replaces_a_damaged_shard_for_good(tmp_path):
    class Fickle(models.Breaking):
        def predict(self, batch):
            return (super().predict(batch) + len(self.asked)) % 97

    model = Fickle(25)
    evaluate = partial(fs.evaluate, model, on=ON, seeds=2, out=tmp_path / "r")
    with pytest.raises(ModelError, match="gone"):
        evaluate()
    shard = next((tmp_path / "r" / "shards" / "seed-0").rglob("*.arrow"))
    shard.write_bytes(shard.read_bytes()[:-10])
    assert fs.score(evaluate()).candidates == 1


def test_checkpoints_that_come_in_another_order_after_a_kill_keep_their_own_answers(tmp_path):
    class Folder:
        """No `fit`: its checkpoints were trained elsewhere, and more of them may lie there the next time."""

        names = ("b", "c")
        breaks = True

        def checkpoints(self):
            yield from ((name, models.Adder(0, 0.1 * "abc".index(name))) for name in self.names)
            if Folder.breaks:
                raise ConnectionError("gone")

        def predict(self, batch):
            raise AssertionError

    with pytest.raises(ModelError, match="gone"):
        fs.evaluate(Folder(), on=ON, seeds=1, out=tmp_path / "r", name="m")
    Folder.breaks, Folder.names = False, ("a", "b", "c")
    run = fs.evaluate(Folder(), on=ON, seeds=1, out=tmp_path / "r", name="m")
    clean = fs.evaluate(Folder(), on=ON, seeds=1, out=tmp_path / "c", name="m")
    assert run.predictions().equals(clean.predictions())


def test_one_answer_that_cost_much_is_kept(tmp_path):
    evaluate = partial(fs.evaluate, models.Breaking(1), on=ON, seeds=1, out=tmp_path / "r")
    with pytest.raises(ModelError, match="gone"):
        evaluate()
    with pytest.raises(BadRun, match=r"another request \(512 predictions stored; model batch_size 512, now 100\)"):
        evaluate(batch_size=100)


def test_what_a_kill_left_beside_a_finished_run_is_cleared_away_and_misleads_nobody(tmp_path):
    out = tmp_path / "r"
    run = fs.evaluate(models.Adder(), on=ON, seeds=1, out=out)
    (out / "plan.json").write_text(json.dumps({"seeds": [0], "benchmark": {"name": ON}, "model": {"name": "m"}}))
    (out / "shards" / "seed-0").mkdir(parents=True)
    (out / ".predictions.parquet.123.tmp").write_text("half")
    (out / ".gitignore").write_text("*")
    (result,) = list_statuses([out])
    assert (result.state, result.answers) == ("finished", run.predictions().num_rows)
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=out)
    assert sorted(path.name for path in out.iterdir()) == [".gitignore", "log.jsonl", "predictions.parquet", "run.toml"]


def test_a_process_that_comes_after_the_others_have_finished_is_given_the_run(tmp_path, monkeypatch):
    """Under torchrun the first process may be done before the others have loaded their libraries."""
    run = fs.evaluate(models.Adder(), on=ON, seeds=1, out=tmp_path / "r")
    card = run.card.to_dict()
    plan = {
        "benchmark": card["benchmark"],
        "model": {key: value for key, value in card["model"].items() if key not in ("candidates", "finals")},
        "budget": {key: value for key, value in card["budget"].items() if key != "seeds"},
        "seeds": card["budget"]["seeds"],
    }
    monkeypatch.setattr(run_folder, "_STALE_SECONDS", 0.2)
    with RunFolder.begin(tmp_path / "r", plan, World(1, 2, "host:1::")) as late:
        assert late.missing() == []
        assert late.finish(World(1, 2, "host:1::")).digest == run.digest
    with (
        pytest.raises(BadRun, match="has a finished run"),
        RunFolder.begin(tmp_path / "r", plan | {"seeds": [0, 1]}, World(1, 2, "host:1::")),
    ):
        pass


def test_probabilities_that_some_batches_lack_are_left_out_whatever_the_shards(tmp_path, monkeypatch):
    class Sometimes:
        def predict(self, batch):
            a = (batch["a"] + batch["b"]) % 97
            return a if len(a) == 512 and a[0] % 2 else np.eye(97, dtype=np.float32)[a]

    runs = {}
    for rows in (1, 10**6):
        monkeypatch.setattr("farshift.benchmarks.runs.run_folder.FLUSH_ROWS", rows)
        runs[rows] = fs.evaluate(Sometimes(), on=ON, seeds=1, out=tmp_path / str(rows), name="m")
    contents = {(run.path / "predictions.parquet").read_bytes() for run in runs.values()}
    assert len(contents) == 1, "whatever the shards"
    assert "scores" not in runs[1].predictions().column_names
    assert isinstance(fs.score(runs[1]).metrics["nll@1"].id, NotAvailable)


def test_folders_that_hold_no_readable_run_are_named_by_status(tmp_path):
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=tmp_path / "good")
    for name, content in (("plan.json", '{"resource_changes": []}'), ("plan.json", "[]"), ("run.toml", "x = 1\n")):
        (tmp_path / "bad").mkdir(exist_ok=True)
        (tmp_path / "bad" / name).write_text(content)
        with pytest.raises(FarshiftError, match="bad"):
            list_statuses([tmp_path])
    (tmp_path / "good" / "predictions.parquet").write_bytes(b"nothing")
    with pytest.raises(FarshiftError, match="good"):
        list_statuses([tmp_path / "good"])


def test_status_reads_a_run_that_vanishes_under_its_eyes(half_done, monkeypatch):
    """Between two looks at the folder the run is finished, and its shards are gone."""
    real = Path.stat

    def vanishing(self: Path, **options: bool) -> os.stat_result:
        if self.suffix == ".arrow":
            self.unlink(missing_ok=True)
        return real(self, **options)

    monkeypatch.setattr(Path, "stat", vanishing)
    (result,) = list_statuses([half_done])
    assert (result.state, result.seeds, result.rate) == ("stopped", 1, None)
