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
from farshift.benchmarks.benchmark import Benchmark, Definition, find_benchmark
from farshift.benchmarks.harness import VisibleRows
from farshift.splits.errors import BadDefinition, BadRun, FarshiftError, ModelError, UnknownName

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
    batches = [list(seen["train"].batches(1000, seed=seed, epoch=0)) for seed in (0, 0, 1)]
    orders = [np.concatenate([batch["a"] * 97 + batch["b"] for batch in some]).tolist() for some in batches]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2])
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
        (models.raising, r"predict on id_test, batch 0 \(rows .*\) raised ValueError: out of luck \(models.py:\d+\)"),
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

    with pytest.raises(ModelError, match=r"seed 0: fit raised MemoryError: too big \(test_harness.py:\d+\)$"):
        fs.evaluate(Unfit, on=ON, seeds=1)


def test_names_and_options_that_do_not_exist_are_refused():
    with pytest.raises(UnknownName, match="did you mean scan/length"):
        fs.evaluate(models.Echo(), on="scan/lenght")
    with pytest.raises(FarshiftError, match="use full or quick"):
        fs.evaluate(models.Echo(), on="scan/length", budget="huge")
    with pytest.raises(FarshiftError, match="give 1 to 100"):
        fs.evaluate(models.Echo(), on="scan/length", seeds=[])
    with pytest.raises(ModelError, match="no predict"):
        fs.evaluate(object(), on=ON)
    with pytest.raises(FarshiftError, match="device 'gpu': use cpu, cuda"):
        fs.evaluate(models.Adder(), on=ON, device="gpu")


def test_a_finished_run_is_immutable_and_an_edited_one_is_refused(tmp_path):
    out = tmp_path / "run"
    fs.evaluate(models.Adder(), on=ON, seeds=1, out=out)
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]
    with pytest.raises(BadRun, match=r"holds a finished run \(other budget seeds\), which is never changed"):
        fs.evaluate(models.Adder(), on=ON, seeds=2, out=out)
    before = (out / "run.toml").read_bytes()
    assert fs.evaluate(models.Adder(), on=ON, seeds=1, out=out).digest == fs.read_run(out).digest, "given back as it is"
    assert (out / "run.toml").read_bytes() == before
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
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(BadRun, match=r"not empty \(it holds thesis.tex\)"):
        fs.evaluate(models.Adder(), on=ON, seeds=3, out=tmp_path / "mine")


def test_a_plan_under_which_nothing_was_finished_is_replaced(tmp_path):
    with pytest.raises(ModelError):
        fs.evaluate(models.raising, on=ON, seeds=2, out=tmp_path / "run", name="m")
    run = fs.evaluate(models.Adder, on=ON, seeds=3, out=tmp_path / "run", name="m")
    assert run.seeds == (0, 1, 2)


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


class Moody(models.Adder):
    """Fails on its third seed while a file exists."""

    mood: Path

    def predict(self, batch):
        if self.seed == 2 and self.mood.exists():
            raise ValueError("not today")
        return super().predict(batch)


def test_a_shard_that_was_damaged_is_made_again(tmp_path):
    Moody.mood = tmp_path / "mood"
    Moody.mood.write_text("")
    with pytest.raises(ModelError, match="not today"):
        fs.evaluate(Moody, on=ON, seeds=3, out=tmp_path / "r", name="m")
    Moody.mood.unlink()
    shard = tmp_path / "r" / "shards" / "seed-0.parquet"
    shard.write_bytes(shard.read_bytes()[:-10])
    run = fs.evaluate(Moody, on=ON, seeds=3, out=tmp_path / "r", name="m")
    clean = fs.evaluate(Moody, on=ON, seeds=3, out=tmp_path / "c", name="m")
    assert fs.score(run).json() == fs.score(clean).json()
    events = [json.loads(line)["event"] for line in (tmp_path / "r" / "log.jsonl").read_text().splitlines()]
    assert events.count("seed done") == 4


def test_an_unfinished_run_never_goes_on_with_other_code_or_batches(tmp_path):
    path, out = tmp_path / "m.py", tmp_path / "r"
    text = "class M:\n def __init__(s, seed): s.seed = seed\n def predict(s, b):\n  if s.seed: raise ValueError('no')\n  return b['a']\n"
    path.write_text(text)
    command = [sys.executable, "-m", "farshift", "evaluate", f"{path}:M", "--on", ON, "--seeds", "2", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "raised ValueError: no (m.py:4)" in done.stderr
    path.write_text(text.replace("raise ValueError('no')", "pass"))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "another plan (1 seeds done; other model code)" in done.stderr
    path.write_text(text)
    done = subprocess.run([*command, "--batch-size", "7"], capture_output=True, text=True, check=False)
    assert "other model batch_size" in done.stderr


def test_remarks_that_are_no_numbers_do_not_spoil_a_run():
    class Remarkable(models.Adder):
        def fit(self, train, val, budget):
            return {"loss": float("nan"), "steps": 3, "why": "x" * 999, "weights": np.zeros(3)}

    spent = fs.evaluate(Remarkable, on=ON, seeds=1).card["spent"]["by_seed"]["seed_0"]
    assert (spent["loss"], spent["steps"], len(spent["why"])) == ("nan", 3, 200)
    assert "weights" not in spent


def test_an_exit_inside_a_model_is_no_way_out():
    class Quitter(models.Adder):
        def predict(self, batch):
            sys.exit(0)

    with pytest.raises(ModelError, match="raised SystemExit"):
        fs.evaluate(Quitter, on=ON, seeds=1)


def test_logits_with_gradients_are_a_named_error():
    torch = pytest.importorskip("torch")
    answer = lambda batch: torch.zeros(len(batch["a"]), requires_grad=True)  # noqa: E731
    with pytest.raises(ModelError, match=r"reading the Tensor that predict gave on id_test, batch 0"):
        fs.evaluate(lambda seed: models.Bad(answer), on=ON, seeds=1)


def test_names_and_texts_that_no_board_would_take_are_refused_before_the_run():
    with pytest.raises(FarshiftError, match="1 to 100 printable characters"):
        fs.evaluate(models.Adder(), on=ON, seeds=1, name="x" * 101)
    with pytest.raises(ModelError, match="a text of 100001 characters"):
        fs.evaluate(models.Bad(lambda batch: ["x" * 100_001] * len(batch["command"])), on="scan/length", seeds=1)
    with pytest.raises(FarshiftError, match="each from 0 to 2147483647"):
        fs.evaluate(models.Adder(), on=ON, seeds=[2**31])


def definition(change: dict) -> Benchmark:
    """modadd97/xi35 with parts of its definition changed."""
    known = find_benchmark(ON)
    raw = known.definition.model_dump()
    for key, value in change.items():
        raw[key] = raw[key] | value
    return Benchmark(Definition.model_validate(raw), known.path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"task": {"inputs": ["a", "b", "sum"]}}, "'sum' is of role label, and no input for a model"),
        ({"task": {"inputs": ["a", "row_id"]}}, "no field named 'row_id'"),
        ({"task": {"label": "a"}}, "label 'a' is not the split's, 'sum'"),
        ({"views": {"extra": {"part": "id_test", "rows": "corrupted"}}}, "the view 'extra' has no rows"),
    ],
)
def test_a_definition_that_would_show_labels_or_score_nothing_is_refused(change, complaint):
    with pytest.raises((BadDefinition, UnknownName), match=complaint):
        fs.evaluate(models.Adder(), on=definition(change), seeds=1)


def test_steps_set_by_hand_make_another_identity(tmp_path):
    one = fs.evaluate(models.Adder(), on=ON, seeds=2, steps=5, name="m")
    other = fs.evaluate(models.Adder(), on=ON, seeds=2, name="m")
    assert one.entry_identity != other.entry_identity
    assert fs.score(one)["steps"] == 5
    with pytest.raises(FarshiftError, match="cannot be compared"):
        fs.compare(one, other)


def test_a_run_of_another_version_is_neither_scored_nor_compared(monkeypatch):
    run = fs.evaluate(models.Adder(), on=ON, seeds=2)
    monkeypatch.setattr("farshift.benchmarks.benchmark.SCORER", 2)
    for use in (lambda: fs.score(run), lambda: fs.compare(run, run)):
        with pytest.raises(BadRun, match="made for another version"):
            use()


def test_one_seed_gives_no_verdict():
    runs = [fs.evaluate(models.Adder(wrong=wrong), on=ON, seeds=1) for wrong in (0.1, 0.5)]
    found = fs.compare(*runs)
    assert found["difference"]["id"]["distinguishable"] is None
    assert "a single seed tells nothing of training noise" in found["interval"]


def test_two_processes_on_one_run_train_each_seed_once(tmp_path):
    out, log = tmp_path / "run", tmp_path / "log"
    command = [sys.executable, "-c", SLOW, out, log]
    children = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [child.wait(timeout=60) for child in children] == [0, 0], "the second one is given the first one's run"
    assert sorted(log.read_text().split()) == ["0", "1", "2", "3"]
    assert sorted(path.name for path in out.iterdir()) == ["log.jsonl", "predictions.parquet", "run.toml"]


def test_a_run_on_a_full_disk_says_so_and_goes_on(tmp_path, monkeypatch):
    import errno

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    fs.load(ON)
    monkeypatch.setattr("farshift.loaders.cache.os.fsync", full)
    with pytest.raises(FarshiftError, match="no space left for .*name another --out"):
        fs.evaluate(models.Adder, on=ON, seeds=2, out=tmp_path / "r")
    monkeypatch.undo()
    assert fs.evaluate(models.Adder, on=ON, seeds=2, out=tmp_path / "r").seeds == (0, 1)


def test_a_random_forest_differs_by_seed_and_repeats():
    ensemble = pytest.importorskip("sklearn.ensemble")
    scores = [
        fs.score(fs.evaluate(ensemble.RandomForestClassifier(2, max_depth=3), on=ON, seeds=2))["views"]["fit_clean"][
            "per_seed"
        ]
        for _ in range(2)
    ]
    assert scores[0] == scores[1]
    assert scores[0][0] != scores[0][1]


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
    assert found["model"] == "StandardScaler+KNeighborsClassifier"


def test_exact_match_counts_whole_sequences():
    from farshift.benchmarks.metrics.exact_match import per_row

    task = fs.benchmark("scan/length").task
    given = np.array(["A B", " A  B ", "A", "A B C", ""], object)
    assert per_row(given, np.array(["A B"] * 5, object), task).tolist() == [1, 1, 0, 0, 0]
    character = fs.benchmark("prefix_sums/32_to_64").task
    assert per_row(np.array(["01", "01 "], object), np.array(["01", "01"], object), character).tolist() == [1, 0]
