"""Scores at their edges: regression end to end, losses, single rows, numbers too large; n/a with a reason, never NaN."""

from __future__ import annotations

import json
from math import isfinite
from pathlib import Path
from typing import Any

import farshift as fs
import models
import numpy as np
import pytest
from farshift import Answers, FarshiftError
from farshift.benchmarks.comparison.run_measures import measure_effective_robustness
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from farshift.benchmarks.scoring.answered_rows import AnsweredRows
from farshift.benchmarks.statistics.interval import (
    NotAvailable,
    estimate_gap,
    estimate_mean,
    estimate_paired_difference,
    make_estimate,
)
from farshift.benchmarks.statistics.sample import RowScores
from farshift.benchmarks.statistics.variance_estimate import VarianceEstimate
from farshift.core.errors import BadRun, ModelError
from farshift.loaders.freezing.freeze import freeze
from own import changed
from own_benchmark import write_benchmark
from scipy.stats import beta

ON = "modadd97/xi35"

DRAFT = """
name = "falls/high"
version = 1
kind = "easy-to-hard"
title = "Low storeys train, high ones test"
label = "seconds"
rule = "easy_to_hard/threshold"
parameters = { field = "storey", easy_at_most = 6, id_test = 20, seed = "falls/high@1" }
severity = { name = "storey" }
data = { files = ["falls.csv"], inputs = ["height"], labels = ["seconds"], meta = ["storey"] }
"""
BENCHMARK = {
    "metrics": ["rmse", "pearson"],
    "holdouts": [{"part": "train", "to": "id_val", "share": 0.2}],
    "views": {"id": {"part": "id_test"}, "ood": {"part": "ood_test"}, "fit": {"part": "train"}},
    "protocol": {"selection": ["last", "id_val"]},
}
"""How long stones fall: a regression benchmark of a user's own. Its last storey has a single row."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("home")
    heights = np.arange(1, 133) / 4
    lines = [f"{height},{float(np.sqrt(height / 5))},{int(height // 3)}" for height in heights.tolist()]
    (root / "falls.csv").write_text("\n".join(["height,seconds,storey", *lines]))
    (root / "draft.toml").write_text(DRAFT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FARSHIFT_PATH", str(root))
        manifest, _ = freeze(root / "draft.toml", root / "splits/manifests")
        write_benchmark(manifest, BENCHMARK, root)
    return root


@pytest.fixture
def falls(home: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FARSHIFT_PATH", str(home))
    return "falls/high"


class Clock:
    """Knows the law, times `factor`, without an answer to the first `lost` rows."""

    def __init__(self, seed: int = 0, factor: float = 1.1, lost: int = 0) -> None:
        self.seed, self.factor, self.lost = seed, factor, lost

    def predict(self, batch):
        seconds = np.sqrt(batch["height"] / 5) * self.factor + 0.001 * self.seed
        return [None] * self.lost + seconds[self.lost :].tolist()


def numbers_in(value: Any) -> list[float]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers_in(item)]
    return [value] if isinstance(value, float) else []


def test_a_regression_is_scored_by_its_error_the_smaller_the_better(falls, tmp_path):
    settings = {"far": {"factor": 1.5}, "near": {"factor": 1.01}}
    run = fs.evaluate(Clock, on=falls, seeds=2, settings=settings, selection="id_val", out=tmp_path / "r")
    result = fs.score(run)
    rules = result.selections
    assert [rules[rule].chosen[0] for rule in ("last", "id_val", "oracle")] == [
        "far/last",
        "near/last",
        "near/last",
    ]
    part = fs.benchmark(falls).part("ood_test")
    answers = [np.sqrt(part.numpy()["height"] / 5) * 1.01 + 0.001 * seed for seed in range(2)]
    errors = [np.sqrt(np.mean((answer - part.true_labels()) ** 2)) for answer in answers]
    assert result.ood.per_seed == pytest.approx(errors, abs=1e-6)
    assert rules["id_val"].regret.value == 0
    assert rules["last"].regret.value > 0.5, "what is lost is positive, whichever way the metric runs"
    assert result.gap.value < 0, "the error is larger where no stone fell"
    assert result.worst_group.estimate.value == max(item.value for item in result.worst_group.groups.values())
    assert result.bounds is None
    assert all(map(isfinite, numbers_in(json.loads(result.json()))))


def test_a_group_of_one_row_which_has_no_interval_is_never_called_the_worst(falls, tmp_path):
    result = fs.score(fs.evaluate(Clock, on=falls, seeds=2, out=tmp_path / "r"))
    groups, sizes = np.unique(fs.benchmark(falls).part("ood_test").row_metadata["group"], return_counts=True)
    assert sorted(result.worst_group.groups) == sorted(groups[sizes > 1].tolist())
    assert (sizes == 1).any()


def test_a_candidate_that_left_rows_open_costs_only_the_rules_that_choose_it(falls, tmp_path):
    settings = {"open": {"lost": 1}, "whole": {}}
    run = fs.evaluate(Clock, on=falls, seeds=2, settings=settings, selection="id_val", out=tmp_path / "r")
    result = fs.score(run)
    assert result.selections["last"].ood == NotAvailable("not defined: 1 of 49 rows have no answer")
    assert result.selections["id_val"].chosen == {0: "whole/last", 1: "whole/last"}
    assert all(map(isfinite, numbers_in(json.loads(result.json()))))
    assert "by last: OOD n/a" in str(result)
    with pytest.raises(BadRun, match="rmse is not defined on the view id: 1 of 20 rows have no answer"):
        fs.score(run, selection="last")


@pytest.mark.parametrize("factor", [1e-170, 1e60, 1e120, 1e149])
def test_answers_of_any_size_are_scored(falls, tmp_path, factor):
    result = fs.score(fs.evaluate(Clock, on=falls, seeds=2, settings={"a": {"factor": factor}}, out=tmp_path / "r"))
    assert all(map(isfinite, numbers_in(json.loads(result.json()))))


def test_an_answer_too_large_to_square_is_refused_by_its_row_when_it_is_given(falls, tmp_path):
    complaint = (
        r"returned [\d.]+e\+200 for row [0-9a-f]{16} \(20 rows\), too large to be scored: clip .* on id_test, batch 0"
    )
    with pytest.raises(ModelError, match=complaint):
        fs.evaluate(Clock, on=falls, seeds=2, settings={"a": {"factor": 1e200}}, out=tmp_path / "r")


def test_two_runs_whose_difference_is_not_defined_are_not_called_distinguishable(falls, tmp_path):
    runs = [
        fs.evaluate(Clock, on=falls, seeds=2, settings={"a": {"lost": lost}}, out=tmp_path / str(lost), name=str(lost))
        for lost in (0, 1)
    ]
    result = fs.compare(*runs).to_dict()["difference"]
    assert {name: item["distinguishable"] for name, item in result.items()} == dict.fromkeys(("id", "ood", "gap"))
    assert all("n/a" in item for item in result.values())
    with pytest.raises(FarshiftError, match="scored by rmse"):
        measure_effective_robustness(runs[0], runs)


def test_a_board_ranks_the_smaller_error_of_a_regression_first(falls, tmp_path, command):
    runs = [
        fs.evaluate(Clock, on=falls, seeds=2, settings={"a": {"factor": factor}}, out=tmp_path / name, name=name)
        for name, factor in (("near", 1.01), ("far", 1.5))
    ]
    pack = ["pack", *(run.path for run in runs), "--out", tmp_path / "s.zip"]
    board, site = tmp_path / "board", tmp_path / "site"
    submit = ["submit", tmp_path / "s.zip", "--to", board]
    for arguments in (pack, ["board", "init", board], submit, ["board", "verify", board]):
        assert command(*arguments).returncode == 0
    assert command("board", "site", board, "--out", site).returncode == 0
    (page,) = (file.read_text() for file in (site / "benchmarks").rglob("*.html") if file.stem != "index")
    assert page.index(">near<") < page.index(">far<")


def measured(rows: int, answers: np.ndarray) -> AnsweredRows:
    from farshift.benchmarks.answers import Answers

    ids = np.arange(rows, dtype=np.uint64)
    truth = np.arange(rows) % 2
    return AnsweredRows(
        Task("classification", ("a",), "label", classes=2), ids, truth, [Answers.all_given(answers)] * 2
    )


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize("name", ["macro_f1", "balanced_accuracy", "accuracy"])
def test_few_rows_have_a_value_and_an_interval_or_the_reason_why_not(rows, name):
    result = estimate_mean(measured(rows, np.zeros(rows, np.int64)).by(find_metric(name))).to_dict()
    assert ("n/a" in result) != ("value" in result)
    assert all(map(isfinite, numbers_in(result)))
    if rows > 1 or name == "accuracy":
        assert result["low"] < result["high"]
        assert result["low"] <= result["value"] <= result["high"]
    else:
        assert "no interval: it was measured on a single row" in result["n/a"]


@pytest.mark.parametrize("rows", [2, 4, 20, 200])
@pytest.mark.parametrize("name", ["macro_f1", "balanced_accuracy", "auroc"])
def test_right_on_every_row_is_not_certain(rows, name):
    """Leaving rows out moves nothing there: the interval is wide all the same, and two such models are not apart."""
    truth = np.arange(rows) % 2
    answers = Answers.all_given(truth, np.eye(2, dtype=np.float32)[truth])
    task, ids = Task("classification", ("a",), "label", classes=2), np.arange(rows, dtype=np.uint64)
    sample = AnsweredRows(task, ids, truth, [answers] * 3).by(find_metric(name))
    result = estimate_mean(sample)
    if (name, rows) == ("auroc", 2):
        assert result.to_dict() == {"n/a": "1, but no interval: not defined without some of the rows"}
        return
    assert result.value == result.high == 1
    assert result.low <= beta.ppf(0.025, rows, 1), "no narrower than Clopper and Pearson's interval of so many rows"
    wrong = Answers.all_given(1 - truth, np.eye(2, dtype=np.float32)[1 - truth])
    few = estimate_paired_difference(sample, AnsweredRows(task, ids, truth, [wrong] * 3).by(find_metric(name)))
    assert (few.low > 0) == (rows > 4)


@pytest.mark.parametrize(("name", "kind"), [("pearson", "regression"), ("entity_f1", "sequence")])
def test_right_on_every_row_is_not_certain_without_classes_either(name, kind):
    truth = np.arange(40.0) if kind == "regression" else np.array(["B-PER I-PER O"] * 40, object)
    rows = AnsweredRows(Task(kind, ("a",), "label"), np.arange(40, dtype=np.uint64), truth, [Answers.all_given(truth)])
    result = estimate_mean(rows.by(find_metric(name)))
    assert result.value == pytest.approx(1) == result.high
    assert 0.5 < result.low < 0.95


def test_the_reason_why_a_metric_is_not_defined_is_the_true_one():
    task, ids = Task("classification", ("a",), "label", classes=2), np.arange(4, dtype=np.uint64)
    sure = np.full((4, 2), 0.5, np.float32)
    alike = AnsweredRows(task, ids, np.ones(4, np.int64), [Answers.all_given(np.ones(4, np.int64), sure)])
    assert estimate_mean(alike.by(find_metric("auroc"))).to_dict() == {"n/a": "not defined: all rows are of one class"}
    item = AnsweredRows(task, ids, np.array([0, 1, 1, 1]), alike.answers)
    output = estimate_mean(item.by(find_metric("auroc"))).to_dict()["n/a"]
    assert output == "0.5, but no interval: not defined without some of the rows"
    numbers = Task("regression", ("a",), "label")
    same = AnsweredRows(numbers, ids, np.arange(4.0), [Answers.all_given(np.zeros(4))])
    assert estimate_mean(same.by(find_metric("pearson"))).to_dict() == {
        "n/a": "not defined: a model answers all rows alike"
    }
    flat = AnsweredRows(numbers, ids, np.zeros(4), [Answers.all_given(np.arange(4.0))])
    assert estimate_mean(flat.by(find_metric("pearson"))).to_dict() == {
        "n/a": "not defined: the true values are all the same"
    }


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
def test_rows_without_a_finite_score_give_no_number(bad):
    scores = np.ones((2, 5))
    scores[0, 3] = bad
    lost, fine = RowScores(scores, (-np.inf, np.inf)), RowScores(np.ones((2, 5)), (-np.inf, np.inf))
    opposite = RowScores(-scores, (-np.inf, np.inf))
    for estimate in (
        estimate_mean(lost),
        estimate_gap(lost, fine),
        estimate_paired_difference(fine, lost),
        estimate_mean(lost.minus(opposite)),
    ):
        assert not estimate.defined
        assert estimate.to_dict() == {"n/a": "not defined: 1 of 5 rows have no finite score"}


@pytest.mark.parametrize("size", [1e-200, 1e-3, 1.0, 1e200])
def test_an_interval_scales_with_what_it_is_of(size):
    def scale(by: float) -> list[float | None]:
        rows, seeds = VarianceEstimate(2 * by, 9), VarianceEstimate(3 * by, 4)
        estimate = make_estimate(0.0, [rows], [seeds], (-np.inf, np.inf))
        return [estimate.low, estimate.high, estimate.row_se, estimate.seed_se]

    assert scale(size) == pytest.approx([value * np.sqrt(size) for value in scale(1.0)], rel=1e-12)


def test_a_primary_metric_of_probabilities_says_that_the_model_gave_none(tmp_path, monkeypatch):
    by_nll = changed(ON, {"metrics": [{"name": "nll", "version": 1}]})
    monkeypatch.setattr("farshift.benchmarks.scoring.score.find_benchmark", lambda name: by_nll)
    run = fs.evaluate(models.Adder(), on=by_nll, seeds=2, out=tmp_path / "r")
    with pytest.raises(FarshiftError, match="this metric requires class probabilities, but the model returned classes"):
        fs.score(run)
