"""Candidates and selection: the scorer applies every rule, from predictions alone, and shows what each would cost."""

from __future__ import annotations

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.selection import crafted_shift, leave_one_group_out, load_rules
from farshift.benchmarks.statistics.interval import NotAvailable
from farshift.core.errors import BadRun, ModelError
from own import changed

ON = "modadd97/xi35"


class Stages:
    """Three checkpoints; the middle one is the best."""

    def __init__(self, seed, wrong=(0.5, 0.1, 0.3)):
        self.seed, self.wrong = seed, wrong

    def fit(self, train, val, budget):
        return {"steps": 30}

    def checkpoints(self):
        for number, wrong in enumerate(self.wrong):
            self.now = models.Adder(self.seed, wrong)
            yield ("last" if number == 2 else f"step-{10 * (number + 1)}"), self

    def predict(self, batch):
        return self.now.predict(batch)


def accuracy(bench, view, model):
    part, truth = bench.view(view)
    return np.mean(model.predict(part.numpy(["a", "b"])) == truth)


def test_every_rule_is_applied_side_by_side_and_the_runs_own_decides(tmp_path):
    runs = {
        rule: fs.evaluate(Stages, on=ON, seeds=3, out=tmp_path / rule, selection=rule) for rule in ("last", "id_val")
    }
    assert runs["last"].entry_identity != runs["id_val"].entry_identity
    assert runs["last"].candidates == ("step-10", "step-20", "last")
    scores = {rule: fs.score(run) for rule, run in runs.items()}
    bench = find_benchmark(ON)
    for rule, wrong, name in (("last", 0.3, "last"), ("id_val", 0.1, "step-20")):
        result = scores[rule]
        assert (result.selection, result.candidates) == (rule, 3)
        assert result.selections[rule].chosen == {0: name, 1: name, 2: name}
        expected = np.mean([accuracy(bench, "ood", models.Adder(seed, wrong)) for seed in range(3)])
        assert result.ood.value == pytest.approx(expected, abs=1e-6)
        assert result.ood == result.selections[rule].ood
    both = [score.selections for score in scores.values()]
    assert both[0] == both[1], "whatever a run's own rule is, all are shown alike"
    regret = both[0]["last"].ood.value + both[0]["last"].regret.value
    assert regret == pytest.approx(both[0]["oracle"].ood.value, abs=2e-6)
    assert both[0]["oracle"].regret.value == 0
    assert isinstance(both[0]["ood_val"], NotAvailable)
    assert "has no part ood_val" in both[0]["ood_val"].reason
    assert "by id_val: OOD" in str(scores["last"])


def test_a_run_may_be_scored_by_another_rule_that_its_protocol_allows(tmp_path):
    run = fs.evaluate(Stages, on=ON, seeds=2, out=tmp_path / "r")
    again = fs.score(run, selection="id_val")
    assert again.selection == "id_val"
    assert again.entry_identity != run.entry_identity
    with pytest.raises(
        FarshiftError, match="selection 'oracle': the protocol of modadd97/xi35 allows last or id_val or"
    ):
        fs.score(run, selection="oracle")


def test_noisy_validation_reads_given_labels_and_clean_validation_declares_that_it_reads_true_ones(tmp_path):
    """A candidate that memorised the noise of its validation rows wins by id_val and loses by clean_val."""
    bench = find_benchmark(ON)
    val = bench.part("id_val")
    given = {(a, b): label for a, b, label in zip(*val.numpy(["a", "b"]).values(), val.observed_labels(), strict=True)}

    class Parrot(Stages):
        def checkpoints(self):
            yield "adder", models.Adder(0, 0.2)
            yield "last", models.Bad(lambda batch: [given.get(pair, 0) for pair in zip(*batch.values(), strict=True)])

    result = fs.score(fs.evaluate(Parrot, on=ON, seeds=1, out=tmp_path / "r")).selections
    assert result["id_val"].chosen == {0: "last"}
    assert result["clean_val"].chosen == {0: "adder"}


def test_equal_candidates_go_to_the_earliest(tmp_path):
    run = fs.evaluate(lambda seed: Stages(seed, (0.2, 0.2, 0.2)), on=ON, seeds=1, out=tmp_path / "r")
    assert fs.score(run).selections["id_val"].chosen == {0: "step-10"}


def test_settings_are_candidates_and_last_is_the_first_settings(tmp_path):
    settings = {"rough": {"wrong": 0.4}, "fine": {"wrong": 0.05}}
    run = fs.evaluate(models.Adder, on=ON, seeds=2, settings=settings, out=tmp_path / "r", selection="id_val")
    assert run.candidates == run.finals == ("rough/last", "fine/last")
    result = fs.score(run).selections
    assert result["last"].chosen == {0: "rough/last", 1: "rough/last"}
    assert result["id_val"].chosen == {0: "fine/last", 1: "fine/last"}
    assert result["last"].regret.value > 0.3


def test_settings_reach_an_estimator_and_a_name_it_does_not_know_is_refused(tmp_path):
    neighbours = pytest.importorskip("sklearn.neighbors")
    model = neighbours.KNeighborsClassifier()
    run = fs.evaluate(
        model, on=ON, seeds=1, out=tmp_path / "r", settings={"1": {"n_neighbors": 1}, "9": {"n_neighbors": 9}}
    )
    assert fs.score(run).candidates == 2
    assert model.n_neighbors == 5, "the user's own stays as it is"
    with pytest.raises(ModelError, match="KNeighborsClassifier has no parameter 'neighbours'"):
        fs.evaluate(model, on=ON, seeds=1, settings={"a": {"neighbours": 1}})
    with pytest.raises(ModelError, match="the factory has no argument 'depth', which is in a setting"):
        fs.evaluate(models.Adder, on=ON, seeds=1, settings={"a": {"depth": 1}})
    with pytest.raises(FarshiftError, match="setting 'a/b': it must not contain a /"):
        fs.evaluate(models.Adder, on=ON, seeds=1, settings={"a/b": {}})


def test_seeds_must_name_the_same_checkpoints(tmp_path):
    class Odd(Stages):
        def checkpoints(self):
            yield f"last-{self.seed}", models.Adder()

    with pytest.raises(BadRun, match=r"seed 1 has the candidates last-1, but another seed has last-0"):
        fs.evaluate(Odd, on=ON, seeds=2, out=tmp_path / "r")


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        ([], "returned no checkpoint"),
        (["a", "a"], "'a': the name was used before"),
        (["x" * 101], "1 to 100 printable"),
    ],
)
def test_checkpoints_without_good_names_are_refused(names, complaint):
    class Nameless(Stages):
        def checkpoints(self):
            return [(name, models.Adder()) for name in names]

    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(Nameless, on=ON, seeds=1)


class Grouped:
    """Remembers which groups it was trained on; translates by rote."""

    log: list

    def __init__(self, seed, good=True):
        self.good = good

    def fit(self, train, val, budget):
        rows = train.numpy()
        self.known = dict(zip(rows["command"], rows["actions"], strict=True)) if self.good else {}
        self.log.append((sorted(set(rows["group"])), len(train), val is not None))

    def predict(self, batch):
        return [self.known.get(text, "I_WALK") for text in batch["command"]]


def test_leave_one_group_out_trains_on_the_other_groups_and_asks_for_the_one(tmp_path):
    Grouped.log = []
    run = fs.evaluate(
        Grouped,
        on="scan/length",
        seeds=1,
        out=tmp_path / "r",
        selection="leave_one_group_out",
        settings={"bad": {"good": False}, "good": {}},
    )
    train = find_benchmark("scan/length").part("train")
    sizes = {group: int((train.row_metadata["group"] == group).sum()) for group in ("after", "and", "none")}
    full = (["after", "and", "none"], len(train), True)
    folds = [(sorted(set(sizes) - {out}), len(train) - sizes[out], False) for out in ("after", "and", "none")]
    assert Grouped.log == [item for item in (full, *folds) for _ in range(2)]
    predictions = run.predictions()
    requested = predictions.filter([part == "leave_one_group_out" for part in predictions["part"].to_pylist()])
    assert sorted(requested["row_id"].to_pylist()) == sorted(train.row_ids.tolist() * 2), (
        "each row once for each setting"
    )
    result = fs.score(run)
    assert result.selections["leave_one_group_out"].chosen.keys() == {0}
    assert result.selection == "leave_one_group_out"


def test_groups_count_alike_however_many_rows_they_have():
    bench = find_benchmark("scan/length")
    ballot = leave_one_group_out.ballot(bench)
    assert sorted(set(ballot.groups.tolist())) == ["after", "and", "none"]
    assert len(ballot.row_ids) == len(bench.part("train"))


def test_crafted_shift_trains_on_other_families_and_asks_under_its_own(tmp_path):
    seen = []

    class Pixels:
        def __init__(self, seed, share=0.0):
            self.share = share

        def fit(self, train, val, budget):
            seen.append(len(train))

        def predict(self, batch):
            return (batch["pixels"].reshape(len(batch["pixels"]), -1).sum(axis=1) + self.share) % 10 // 1 * 1

    class Whole(Pixels):
        def predict(self, batch):
            return super().predict(batch).astype(int)

    run = fs.evaluate(Whole, on="optdigits/writers", seeds=1, out=tmp_path / "r", selection="crafted_shift")
    bench = find_benchmark("optdigits/writers")
    train, val = len(bench.part("train")), len(bench.part("id_val"))
    assert seen == [train, train * 3, train * 4], "2 and 3 of the 5 families are seen in the two folds, with the rows"
    predictions = run.predictions()
    requested = predictions.filter([part == "crafted_shift" for part in predictions["part"].to_pylist()])
    assert requested.num_rows == 5 * val
    ballot = crafted_shift.ballot(bench)
    assert sorted(requested["row_id"].to_pylist()) == sorted(ballot.row_ids.tolist())
    assert fs.score(run).selections["crafted_shift"].chosen == {0: "last"}
    other = fs.score(fs.evaluate(Whole, on="optdigits/writers", seeds=1, out=tmp_path / "s")).selections
    assert "evaluate with this rule (--selection crafted_shift)" in other["crafted_shift"].reason


def test_a_protocol_may_not_allow_the_oracle():
    with pytest.raises(ValueError, match="oracle reads the test labels; it is always shown and cannot be listed"):
        changed(ON, {"protocol": {"selection": ["last", "oracle"]}})


def test_a_rule_that_is_one_file_in_a_users_folder_is_found(tmp_path, monkeypatch):
    folder = tmp_path / "own" / "benchmarks" / "selection"
    folder.mkdir(parents=True)
    (folder / "first.py").write_text(
        "from farshift.benchmarks.selection import SelectionData\nPART = 'id_val'\n"
        "def unavailable(benchmark): return 'always'\ndef ballot(benchmark): raise AssertionError\n"
    )
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "own"))
    assert "first" in load_rules()
    run = fs.evaluate(models.Adder(), on=ON, seeds=1, out=tmp_path / "r")
    assert fs.score(run).selections["first"] == NotAvailable("always")


DOMAINBED = """
name = "vowel/domainbed"
split = "vowel/speakers@1"
title = "Vowels of new speakers, by DomainBed's protocol"
task = { type = "classification", inputs = ["features"], label = "vowel", classes = 11 }
holdouts = [
    { part = "train", to = "id_test", share = 0.1 },
    { part = "train", to = "id_val", share = 0.2 },
    { part = "ood_test", to = "ood_val", share = 0.2 },
]
metrics = [{ name = "accuracy", version = 1 }]
views = { id = { part = "id_test" }, ood = { part = "ood_test" } }
protocol = { selection = ["training_domain_val", "leave_one_group_out", "test_domain_val"], seeds = 3 }
"""


class Vowels:
    """Names a vowel by its features; two checkpoints, the later one otherwise wrong."""

    def __init__(self, seed, by=1):
        self.by = by

    def fit(self, train, val, budget):
        pass

    def checkpoints(self):
        for step in (1, 2):
            self.now = step
            yield ("last" if step == 2 else "early"), self

    def predict(self, batch):
        return np.abs(batch["features"][:, self.by] * 100 * self.now).astype(int) % 11


def test_the_three_selections_of_domainbed(tmp_path, monkeypatch):
    folder = tmp_path / "own" / "benchmarks" / "definitions"
    folder.mkdir(parents=True)
    (folder / "domainbed.toml").write_text(DOMAINBED)
    monkeypatch.setenv("FARSHIFT_PATH", str(tmp_path / "own"))
    settings = {str(by): {"by": by} for by in range(8)}
    run = fs.evaluate(Vowels, on="vowel/domainbed", seeds=1, settings=settings, out=tmp_path / "r")
    bench = find_benchmark("vowel/domainbed")

    def hits(name, step):
        setting = Vowels(0, int(name.split("/")[0]))
        setting.now = step
        return {
            part: setting.predict(bench.part(part).numpy(["features"])) == bench.part(part).true_labels()
            for part in PARTS
        }

    PARTS = ("id_val", "ood_val")
    steps = {"early": 1, "last": 2}
    right = {name: hits(name, steps[name.split("/")[1]]) for name in run.candidates}
    speakers = bench.part("id_val").row_metadata["group"]
    by_domain = {
        name: np.mean([result["id_val"][speakers == item].mean() for item in sorted(set(speakers.tolist()))])
        for name, result in right.items()
    }
    result = fs.score(run).selections
    assert result["training_domain_val"].chosen == {0: max(run.candidates, key=by_domain.__getitem__)}
    of_last = {name: right[name]["ood_val"].mean() for name in run.finals}
    assert result["test_domain_val"].chosen == {0: max(run.finals, key=of_last.__getitem__)}
    assert "evaluate with this rule" in result["leave_one_group_out"].reason


def test_a_rule_that_must_be_declared_is_applied_only_where_it_is(tmp_path):
    result = fs.score(fs.evaluate(models.Adder, on=ON, seeds=1, out=tmp_path / "r")).selections
    assert not {"training_domain_val", "test_domain_val"} & result.keys()
    known = load_rules()
    assert known["test_domain_val"].unavailable(find_benchmark(ON)) == f"{ON} has no part ood_val"
    assert "have fewer than two groups" in known["training_domain_val"].unavailable(find_benchmark(ON))
