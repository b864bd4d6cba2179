"""The harness: a number means one thing, bad answers are named, killed runs go on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import farshift as fs
import numpy as np
import pytest
from farshift.benchmarks.harness import VisibleRows
from farshift.splits.errors import BadRun, FarshiftError, ModelError, UnknownName

sys.path.insert(0, str(Path(__file__).parent))
import models

ON = "modadd97/xi35"


def test_a_perfect_model_scores_one_and_a_memoriser_memorises(tmp_path):
    perfect = fs.score(fs.evaluate(models.Adder(wrong=0.0), on=ON, seeds=1, out=tmp_path / "perfect"))
    assert (perfect["id"]["value"], perfect["ood"]["value"], perfect["gap"]["value"]) == (1.0, 1.0, 0.0)
    assert perfect["views"]["memorised"]["value"] == 0.0
    parrot = fs.score(fs.evaluate(models.Memoriser, on=ON, seeds=2, out=tmp_path / "parrot"))
    views = {name: view["value"] for name, view in parrot["views"].items()}
    assert views["memorised"] == views["fit_clean"] == 1.0
    assert views["restored"] == views["ood"] == 0.0
    assert views["id"] < 0.03
    assert "memorised  1.000" in str(parrot)


def test_scores_are_those_counted_by_hand(tmp_path):
    run = fs.evaluate(lambda seed: models.Adder(seed), on=ON, seeds=3, out=tmp_path / "run")
    found = fs.score(run)
    test, train = fs.load(ON, part="id_test").numpy(), fs.load(ON, part="train").numpy()
    per_seed = [np.mean(models.Adder(seed).predict(test) == (test["a"] + test["b"]) % 97) for seed in range(3)]
    assert found["id"]["per_seed"] == [round(value, 6) for value in per_seed]
    wrong = {key: values[train["corrupted"]] for key, values in train.items()}
    restored = [np.mean(models.Adder(seed).predict(wrong) == (wrong["a"] + wrong["b"]) % 97) for seed in range(3)]
    assert found["ood"]["per_seed"] == [round(value, 6) for value in restored]
    assert found["gap"]["value"] == pytest.approx(np.mean(per_seed) - np.mean(restored), abs=1e-6)


def test_scores_do_not_depend_on_batch_size(tmp_path):
    scores = {
        fs.score(fs.evaluate(lambda seed: models.Adder(seed), on=ON, seeds=2, batch_size=size, name="m")).json()
        for size in (1, 97, 100_000)
    }
    assert len(scores) == 1


def test_severity_and_groups_are_reported():
    found = fs.score(fs.evaluate(models.Echo(), on="scan/length", seeds=1))
    curve = found["severity"]
    views = {view: [point for point in curve if point["view"] == view] for view in ("id", "ood")}
    assert len(views["id"]) <= 4
    assert len(views["ood"]) <= 8
    assert (views["id"][0]["from"], views["id"][-1]["to"]) == (1, 22)
    assert (views["ood"][0]["from"], views["ood"][-1]["to"]) == (24, 48)
    for view, points in views.items():
        assert all(one["to"] < other["from"] for one, other in pairwise(points))
        assert sum(point["rows"] for point in points) == found[view]["rows"]
    worst = found["worst_group"]
    assert set(worst["groups"]) == {"and", "after", "none"}
    assert worst["value"] == min(group["value"] for group in worst["groups"].values())


def test_a_hold_out_is_disjoint_whole_and_spares_weighted_rows():
    bench = fs.benchmark("scan/addprim_jump")
    train, withheld = bench.part("train"), bench.part("id_test")
    whole = fs.load("scan/addprim_jump", part="train")
    assert len(withheld) == 1320
    assert sorted([*train.row_ids.tolist(), *withheld.row_ids.tolist()]) == whole.row_ids.tolist()
    assert train.weighted_rows == len(train) + 1466
    assert set(withheld.carried["weight"].tolist()) == {1}


def test_training_sees_inputs_given_labels_and_weights_and_nothing_else():
    seen = {}

    class Spy:
        def fit(self, train, val, budget):
            seen.update(train=train, val=val, budget=budget)

        def predict(self, batch):
            seen.setdefault("batches", []).append(sorted(batch))
            return np.zeros(len(batch["a"]), int)

    fs.evaluate(Spy, on=ON, seeds=1, budget="quick", steps=7)
    assert isinstance(seen["train"], VisibleRows)
    assert sorted(seen["train"].numpy()) == ["a", "b", "sum", "weight"]
    assert seen["val"] is None
    assert (seen["budget"].name, seen["budget"].steps) == ("quick", 7)
    assert all(names == ["a", "b"] for names in seen["batches"])


def test_a_model_that_writes_into_its_input_changes_nothing():
    class Vandal:
        def predict(self, batch):
            answer = (batch["a"] + batch["b"]) % 97
            for values in batch.values():
                values[:] = 0
            return answer

    assert fs.score(fs.evaluate(Vandal(), on=ON, seeds=2))["id"]["value"] == 1.0
    assert fs.load(ON).numpy(["a"])["a"].any()


@pytest.mark.parametrize(
    ("factory", "complaint"),
    [
        (models.too_few, r"511 predictions for 512 rows on id_test, batch 0 \(rows [0-9a-f]{16} \.\. [0-9a-f]{16}\)"),
        (models.nan, r"NaN or infinity for row [0-9a-f]{16} \(\d+ rows\) on id_test, batch 0"),
        (models.floats, r"dtype float64, expected whole numbers"),
        (models.raising, r"predict raised ValueError on id_test, batch 0 \(rows .*\): out of luck"),
        (models.broken_factory, r"factory raised RuntimeError: no weights"),
        (lambda seed: models.Bad(lambda batch: np.full(len(batch["a"]), 97)), r"class 97 for row .*0\.\.96"),
        (lambda seed: models.Bad(lambda batch: None), r"gave NoneType instead of 512 predictions"),
        (lambda seed: models.Bad(lambda batch: np.zeros((len(batch["a"]), 97))), r"shape \(512, 97\)"),
        (lambda seed: 5, r"gave a int, which has no predict"),
    ],
)
def test_a_bad_answer_is_named_with_part_batch_and_rows(tmp_path, factory, complaint):
    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(factory, on=ON, seeds=1, out=tmp_path / "run")
    with pytest.raises(BadRun, match="unfinished"):
        fs.read_run(tmp_path / "run")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (lambda batch: [1] * len(batch["command"]), "gave int instead of text"),
        (lambda batch: ["\ud800"] * len(batch["command"]), "not valid Unicode"),
        (lambda batch: "text", r"gave 4 predictions for 512"),
    ],
)
def test_a_bad_text_is_named(answer, complaint):
    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(models.Bad(answer), on="scan/length", seeds=1)


def test_a_fit_that_raises_is_named():
    class Unfit(models.Adder):
        def fit(self, train, val, budget):
            raise MemoryError("too big\nsecond line")

    with pytest.raises(ModelError, match=r"seed 0: fit raised MemoryError: too big$"):
        fs.evaluate(Unfit, on=ON, seeds=1)


def test_names_and_options_that_do_not_exist_are_refused():
    with pytest.raises(UnknownName, match="did you mean scan/length"):
        fs.evaluate(models.Echo(), on="scan/lenght")
    with pytest.raises(FarshiftError, match="use full or quick"):
        fs.evaluate(models.Echo(), on="scan/length", budget="huge")
    with pytest.raises(FarshiftError, match="give at least one"):
        fs.evaluate(models.Echo(), on="scan/length", seeds=[])
    with pytest.raises(ModelError, match="no predict"):
        fs.evaluate(object(), on=ON)


def test_a_finished_run_is_immutable_and_an_edited_one_is_refused(tmp_path):
    out = tmp_path / "run"
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=out)
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]
    with pytest.raises(BadRun, match="never changed"):
        fs.evaluate(models.Adder(), on=ON, seeds=1, out=out)
    card = (out / "run.toml").read_text()
    (out / "run.toml").write_text(card.replace('name = "Adder"', 'name = "Better"'))
    with pytest.raises(BadRun, match="its digest does not fit"):
        fs.score(out)
    (out / "run.toml").write_text(card)
    content = bytearray((out / "predictions.parquet").read_bytes())
    content[100] ^= 1
    (out / "predictions.parquet").write_bytes(content)
    with pytest.raises(BadRun, match=r"predictions\.parquet is missing or was edited"):
        fs.score(out)
    with pytest.raises(BadRun, match="is not a run"):
        fs.score(tmp_path)


def test_an_unfinished_run_of_another_plan_is_not_continued(tmp_path):
    with pytest.raises(ModelError):
        fs.evaluate(models.raising, on=ON, seeds=2, out=tmp_path / "run", name="m")
    with pytest.raises(BadRun, match=r"another plan \(other seeds\)"):
        fs.evaluate(models.Adder(), on=ON, seeds=3, out=tmp_path / "run", name="m")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(BadRun, match=r"not empty \(it holds thesis.tex\)"):
        fs.evaluate(models.Adder(), on=ON, seeds=3, out=tmp_path / "mine")


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


@pytest.mark.parametrize("stop", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_with_the_seeds_it_has(tmp_path, stop):
    out, log = tmp_path / "run", tmp_path / "log"
    child = subprocess.Popen([sys.executable, "-c", SLOW, out, log, "hang"], stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (not log.exists() or "2" not in log.read_text().split()):
        time.sleep(0.02)
    child.send_signal(stop)
    child.wait()
    with pytest.raises(BadRun, match="unfinished \\(2 seeds done\\)"):
        fs.read_run(out)
    again = subprocess.run([sys.executable, "-c", SLOW, out, log], capture_output=True, text=True, check=True)
    assert log.read_text().split() == ["0", "1", "2", "2", "3"], "finished seeds are not trained again"
    fresh = [sys.executable, "-c", SLOW, tmp_path / "fresh", tmp_path / "log2"]
    assert subprocess.run(fresh, capture_output=True, text=True, check=True).stdout == again.stdout


def test_a_shard_that_was_damaged_is_made_again(tmp_path):
    with pytest.raises(ModelError):
        fs.evaluate(
            lambda seed: models.Adder(seed) if seed < 2 else models.raising(seed),
            on=ON,
            seeds=3,
            out=tmp_path / "r",
            name="m",
        )
    shard = tmp_path / "r" / "shards" / "seed-0.parquet"
    shard.write_bytes(shard.read_bytes()[:-10])
    run = fs.evaluate(lambda seed: models.Adder(seed), on=ON, seeds=3, out=tmp_path / "r", name="m")
    clean = fs.evaluate(lambda seed: models.Adder(seed), on=ON, seeds=3, out=tmp_path / "c", name="m")
    assert fs.score(run).json() == fs.score(clean).json()
    events = [json.loads(line)["event"] for line in (tmp_path / "r" / "log.jsonl").read_text().splitlines()]
    assert events.count("seed done") == 4


def test_scores_are_the_same_bytes_in_another_process_without_torch(tmp_path):
    run = fs.evaluate(lambda seed: models.Adder(seed), on=ON, seeds=3, out=tmp_path / "run")
    code = (
        "import sys; sys.modules['torch'] = None\n"  # importing torch now fails, as where it is not installed
        "import farshift; sys.stdout.buffer.write(farshift.score(sys.argv[1]).json()); assert 'sklearn' not in sys.modules"
    )
    environment = os.environ | {"PYTHONHASHSEED": "7", "LC_ALL": "C"}
    done = subprocess.run([sys.executable, "-c", code, run.path], capture_output=True, env=environment, check=True)
    assert done.stdout == fs.score(run).json()


def test_two_runs_compare_on_the_same_rows(tmp_path):
    good = fs.evaluate(lambda seed: models.Adder(seed, 0.05), on=ON, seeds=3, name="good")
    worse = fs.evaluate(lambda seed: models.Adder(seed, 0.3), on=ON, seeds=3, name="worse")
    found = fs.compare(good, worse)
    scores = [fs.score(run) for run in (good, worse)]
    for view in ("id", "ood", "gap"):
        expected = scores[0][view]["value"] - scores[1][view]["value"]
        assert found["difference"][view]["value"] == pytest.approx(expected, abs=2e-6)
    assert found["difference"]["id"]["distinguishable"]
    assert not fs.compare(good, good)["difference"]["ood"]["distinguishable"]
    quick = fs.evaluate(models.Adder(), on=ON, seeds=1, budget="quick")
    with pytest.raises(FarshiftError, match="cannot be compared"):
        fs.compare(good, quick)


def test_a_scikit_learn_pipeline_is_a_model():
    pytest.importorskip("sklearn")
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    found = fs.score(fs.evaluate(make_pipeline(StandardScaler(), KNeighborsClassifier(1)), on=ON, seeds=1))
    assert found["views"]["memorised"]["value"] == 1.0
    assert found["model"] == "Pipeline"


def test_exact_match_counts_whole_sequences():
    from farshift.benchmarks.metrics.exact_match import per_row

    task = fs.benchmark("scan/length").task
    given = np.array(["A B", " A  B ", "A", "A B C", ""], object)
    assert per_row(given, np.array(["A B"] * 5, object), task).tolist() == [1, 1, 0, 0, 0]
    character = fs.benchmark("prefix_sums/32_to_64").task
    assert per_row(np.array(["01", "01 "], object), np.array(["01", "01"], object), character).tolist() == [1, 0]
