"""Scoring: a number means one thing, and is the same bytes everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import pairwise

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError
from farshift.baselines.running.results import find_recorded_run, list_results
from farshift.benchmarks.benchmark import SCORER
from farshift.benchmarks.runs.run import RunCard
from farshift.benchmarks.scoring.answered_rows import get_cluster_names
from farshift.benchmarks.scoring.record import Score
from farshift.benchmarks.statistics.clusters import Clustering
from farshift.core.documents import read_toml
from farshift.core.errors import BadRun
from records import many, record

ON = "modadd97/xi35"


def test_a_perfect_model_scores_one_and_a_memoriser_memorises(tmp_path):
    perfect = fs.score(fs.evaluate(models.Adder(wrong=0.0), on=ON, seeds=1, out=tmp_path / "perfect"))
    assert (perfect.id.value, perfect.ood.value, perfect.gap.value) == (1.0, 1.0, 0.0)
    assert perfect.views["memorised"].value == 0.0
    parrot = fs.score(fs.evaluate(models.Memoriser, on=ON, seeds=2, out=tmp_path / "parrot"))
    views = {name: view.value for name, view in parrot.views.items()}
    assert views["memorised"] == views["fit_clean"] == 1.0
    assert views["restored"] == views["ood"] == 0.0
    assert views["id"] < 0.03
    assert "memorised  1.000" in str(parrot)


def test_scores_are_those_counted_by_hand(tmp_path):
    run = fs.evaluate(lambda seed: models.Adder(seed), on=ON, seeds=3, out=tmp_path / "run")
    result = fs.score(run)
    test, train = (fs.benchmark(ON).part(part).numpy() for part in ("id_test", "train"))
    per_seed = [np.mean(models.Adder(seed).predict(test) == (test["a"] + test["b"]) % 97) for seed in range(3)]
    assert list(result.id.per_seed) == [round(value, 6) for value in per_seed]
    wrong = {key: values[train["corrupted"]] for key, values in train.items()}
    restored = [np.mean(models.Adder(seed).predict(wrong) == (wrong["a"] + wrong["b"]) % 97) for seed in range(3)]
    assert list(result.ood.per_seed) == [round(value, 6) for value in restored]
    assert result.gap.value == pytest.approx(np.mean(per_seed) - np.mean(restored), abs=1e-6)


def test_scores_do_not_depend_on_batch_size(tmp_path):
    scores = {
        fs.score(fs.evaluate(lambda seed: models.Adder(seed), on=ON, seeds=2, batch_size=size, name="m")).json()
        for size in (1, 97, 100_000)
    }
    assert len(scores) == 1


def test_severity_and_groups_are_reported():
    result = fs.score(fs.evaluate(models.Echo(), on="scan/length", seeds=1))
    curve = result.severity
    views = {view: [point for point in curve if point.view == view] for view in ("id", "ood")}
    assert len(views["id"]) <= 4
    assert len(views["ood"]) <= 8
    assert (views["id"][0].first, views["id"][-1].last) == (1, 22)
    assert (views["ood"][0].first, views["ood"][-1].last) == (24, 48)
    for view, points in views.items():
        assert all(item.last < other.first for item, other in pairwise(points))
        assert sum(point.estimate.rows for point in points) == result.views[view].rows
    worst = result.worst_group
    assert set(worst.groups) == {"and", "after", "none"}
    assert worst.estimate.value == min(group.value for group in worst.groups.values())


def test_a_run_of_another_version_is_neither_scored_nor_compared(monkeypatch):
    run = fs.evaluate(models.Adder(), on=ON, seeds=2)
    monkeypatch.setattr("farshift.benchmarks.benchmark.SCORER", 99)
    monkeypatch.setattr("farshift.benchmarks.benchmark.KNOWN", (98,))
    for use in (lambda: fs.score(run), lambda: fs.compare(run, run)):
        with pytest.raises(BadRun, match="made for another version"):
            use()


def test_a_run_made_under_an_earlier_scorer_is_scored_by_this_one(tmp_path, monkeypatch):
    bench = fs.benchmark(ON)
    monkeypatch.setattr("farshift.benchmarks.benchmark.SCORER", 2)
    old = fs.evaluate(models.Adder, on=ON, seeds=2, out=tmp_path / "run")
    assert bench.made_under(old.entry_identity, "full") == 2
    monkeypatch.undo()
    now = bench.identity("full")
    assert old.entry_identity == bench.identity("full", scorer=2) != now
    assert (bench.made_under(now, "full"), bench.made_under(now[::-1], "full"), bench.made_under(now, "quick")) == (
        SCORER,
        None,
        None,
    )
    result = fs.score(old)
    assert (result.scorer, result.entry_identity) == (SCORER, now)
    new = fs.evaluate(models.Adder, on=ON, seeds=2, out=tmp_path / "new")
    assert fs.score(new).json() == result.json()
    assert fs.compare(old, new).id.value == 0


@pytest.mark.parametrize(
    ("kind", "groups", "severity", "clustered"),
    [
        ("length", ["8", "8", "16", "16"], [8, 8, 16, 16], False),  # lengths, by their own names
        ("domain", ["8", "8", "16", "16"], [8, 8, 16, 16], True),  # domains, such as angles
        ("length", ["and", "or", "and", "or"], [8, 8, 16, 16], True),
        ("length", ["and", "and", "or", "or"], [8, 9, 16, 17], True),
        ("length", ["and", "and", "or", "or"], None, True),
        ("length", None, [1, 2, 3, 4], False),
    ],
)
def test_groups_are_clusters_unless_they_are_the_levels_of_severity(kind, groups, severity, clustered):
    carried = {name: np.array(values) for name, values in (("group", groups), ("severity", severity)) if values}

    class Rows:
        def __len__(self):
            return 4

    part = Rows()
    part.row_metadata = carried
    result = get_cluster_names(part, kind)
    assert result is carried["group"] if clustered else result is None


def test_scores_and_comparisons_say_how_clusters_are_treated():
    result = fs.score(fs.evaluate(models.Echo(), on="scan/length", seeds=1))
    assert result.ood.clustering == Clustering(3, "fixed")
    assert result.gap.clustering == Clustering(6, "fixed")
    assert all(point.estimate.clustering.count <= 3 for point in result.severity)
    groups = result.worst_group.groups.values()
    assert {group.clustering.treated for group in groups} == {"one"}
    assert "ID rows in 3 and OOD rows in 3 clusters, too few to generalise to other clusters" in str(result)
    plain = fs.score(fs.evaluate(models.Adder(), on=ON, seeds=2))
    assert plain.id.clustering == Clustering(None, None)
    assert "clusters" not in plain.interval


def test_one_seed_gives_no_verdict():
    runs = [fs.evaluate(models.Adder(wrong=wrong), on=ON, seeds=1) for wrong in (0.1, 0.5)]
    result = fs.compare(*runs)
    assert result.id.distinguishable is None
    assert "a single seed: no training noise" in result.interval


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
    result = fs.compare(good, worse)
    scores = [fs.score(run) for run in (good, worse)]
    for view in ("id", "ood", "gap"):
        expected = getattr(scores[0], view).value - getattr(scores[1], view).value
        assert getattr(result, view).value == pytest.approx(expected, abs=2e-6)
    assert result.id.distinguishable
    assert not fs.compare(good, good).ood.distinguishable
    quick = fs.evaluate(models.Adder(), on=ON, seeds=1, budget="quick")
    with pytest.raises(FarshiftError, match="cannot be compared"):
        fs.compare(good, quick)


def test_a_benchmark_is_told_in_a_line():
    assert repr(fs.benchmark("modadd97/xi35")) == "Benchmark(modadd97/xi35: classification, a, b -> sum)"


RECORDED_ON = (ON, "prefix_sums/32_to_64")
RECORDED = [(on, name) for on, name in list_results() if on in RECORDED_ON]
MADE = [*many(3), record(groups={"a": 0.1, "b": 0.5}, probabilities=True), record(seeds=1, bounds=None)]


def read_back(score):
    """A score out of its JSON, as a record and as a score again; and what a score out of its report prints."""
    there = json.loads(score.json())
    return there, Score.from_dict(there), str(Score.from_dict(score.report()))


@pytest.mark.parametrize(("on", "name"), RECORDED[::7], ids=lambda value: value.replace("/", "-"))
def test_the_score_of_a_recorded_run_is_read_back_as_it_was_written(on, name):
    score = fs.score(find_recorded_run(on, name))
    there, again, printed = read_back(score)
    assert again == score
    assert again.to_dict() == score.to_dict() == there
    assert printed == str(score)


@pytest.mark.parametrize("score", MADE, ids=lambda score: score.model)
def test_every_part_of_a_score_is_read_back_as_it_was_written(score):
    there, again, printed = read_back(score)
    assert again == score
    assert again.to_dict() == score.to_dict() == there
    assert printed == str(score)


def test_each_benchmark_named_here_has_recorded_runs():
    assert {on for on, _ in RECORDED} == set(RECORDED_ON)


def test_scores_that_differ_are_not_equal_once_read_back():
    first, second = (read_back(score)[1] for score in MADE[:2])
    assert first != second
    assert first.to_dict() != second.to_dict()


def test_a_run_card_says_what_its_file_says():
    for on, name in RECORDED[:4]:
        run = find_recorded_run(on, name)
        there = read_toml(run.path / "run.toml")
        assert RunCard.from_dict(there).to_dict() == run.card.to_dict() == there
