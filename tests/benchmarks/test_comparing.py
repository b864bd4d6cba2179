"""`farshift compare` in full: overall, along severity, by group, with exact tests; and replicates."""

from __future__ import annotations

from pathlib import Path

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError, compare
from farshift.benchmarks.comparison.compare import compare_in_full, find_leaders
from farshift.benchmarks.comparison.run_measures import compute_detectable_difference
from scipy import stats
from support import SHARED

ON = "modadd97/xi35"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, Path]:
    base = tmp_path_factory.mktemp("runs")
    for name, share, seeds in (("good", 0.1, 3), ("worse", 0.3, 3), ("once", 0.1, 1), ("other", 0.12, 1)):
        fs.evaluate(lambda seed, share=share: models.Adder(seed, share), on=ON, seeds=seeds, out=base / name, name=name)
    for name in ("echo", "silent"):
        fs.evaluate(models.Echo(), on="scan/length", seeds=1, out=base / name, name=name)
    return {path.name: path for path in base.iterdir()}


def test_it_has_all_that_compare_says_unchanged(runs):
    short, full = compare(runs["good"], runs["worse"]).to_dict(), compare_in_full(runs["good"], runs["worse"])
    assert {name: full[name] for name in short} == short
    assert full["metric"] == "accuracy@1"
    assert full["bounds"] == [0.0, 1.0]


def test_one_seed_of_right_and_wrong_is_mcnemar_s_exact_test(runs):
    result = compare_in_full(runs["once"], runs["other"])["test"]["ood"]
    assert result["test"] == "McNemar, exact binomial"
    expected = stats.binomtest(result["only_left"], result["only_left"] + result["only_right"]).pvalue
    assert result["p"] == pytest.approx(expected, rel=1e-9)


def test_the_difference_at_each_severity_is_that_of_its_rows(runs):
    result = compare_in_full(runs["echo"], runs["silent"])["severity"]
    assert {point["view"] for point in result} == {"id", "ood"}
    assert all(point["value"] == 0 for point in result), "the same model twice"
    part, _ = fs.benchmark("scan/length").view("ood")
    severity = part.row_metadata["severity"]
    for point in result:
        if point["view"] == "ood":
            inside = np.count_nonzero((severity >= point["from"]) & (severity <= point["to"]))
            assert point["rows"] == inside


@pytest.mark.skipif(not SHARED.exists(), reason="needs the public data files beside the checkout")
def test_groups_add_up_to_the_whole_and_their_p_is_holm_s(monkeypatch):
    from farshift.baselines.running.results import find_recorded_run

    monkeypatch.setenv("FARSHIFT_MIRRORS", str(SHARED))
    result = compare_in_full(
        find_recorded_run("vowel/speakers", "knn"), find_recorded_run("vowel/speakers", "naive-bayes")
    )
    groups = result["groups"]
    assert len(groups) > 1
    rows = [group["rows"] for group in groups.values()]
    mean = np.average([group["value"] for group in groups.values()], weights=rows)
    assert mean == pytest.approx(result["difference"]["ood"]["value"], abs=2e-6)
    p, adjusted = (np.array([group[name] for group in groups.values()]) for name in ("p", "p_holm"))
    order = np.argsort(p)
    steps = np.maximum.accumulate(np.minimum(1, p[order] * np.arange(len(p), 0, -1)))
    assert adjusted[order] == pytest.approx(steps, rel=1e-4)


def test_the_command_prints_it(runs, farshift):
    done = farshift("compare", runs["echo"], runs["silent"], "--full")
    assert done.returncode == 0, done.stderr
    assert "ood at severity" in done.stdout


def test_runs_of_different_benchmarks_are_refused(runs):
    with pytest.raises(FarshiftError, match="these runs cannot be compared"):
        compare_in_full(runs["good"], runs["echo"])


def test_a_trial_on_fewer_rows_is_compared_only_with_another(runs, tmp_path):
    trial, other = (fs.evaluate(models.Adder(seed, 0.1), on=ON, seeds=1, limit=50, name=str(seed)) for seed in (1, 2))
    with pytest.raises(FarshiftError, match=r"cannot be compared: .*, a trial on 50 rows of each part \(--limit\)"):
        fs.compare(runs["good"], trial)
    assert fs.compare(trial, other).seeds == {"left": 1, "right": 1}
    assert find_leaders([runs["good"], trial]) == [False, False]
    with pytest.raises(FarshiftError, match=r"with one protocol: .*, a trial on 50 rows of each part"):
        compute_detectable_difference(ON, [trial, runs["good"]])
    assert compute_detectable_difference(ON, [trial, other])["id"]["rows"] == 50


FOLDS = ["modadd97/xi35", "modadd97/xi20"]


def test_of_one_run_the_replicates_are_its_seeds(tmp_path):
    run = fs.evaluate(
        lambda seed: models.Adder(seed, 0.1 * seed), on=FOLDS[0], seeds=4, out=tmp_path / "r", name="adder"
    )
    result, score = fs.replicates(run), fs.score(run)
    for view, of in (("id", score.id), ("ood", score.ood)):
        assert result["views"][view]["values"] == pytest.approx(list(of.per_seed), abs=1e-6)
        assert result["views"][view]["mean"] == pytest.approx(of.value, abs=1e-6)
        assert result["views"][view]["sd"] == pytest.approx(np.std(of.per_seed, ddof=1), abs=2e-6)
    assert result["replicates"] == "4 seeds"


def test_of_runs_on_folds_each_is_one_replicate(tmp_path):
    runs = [
        fs.evaluate(
            models.Adder,
            on=item,
            seeds=2,
            out=tmp_path / str(number),
            name="adder",
            settings={"a": {"wrong": 0.2 * number}},
        )
        for number, item in enumerate(FOLDS)
    ]
    result = fs.replicates(*runs)
    values = [fs.score(run).ood.value for run in runs]
    assert result["views"]["ood"]["values"] == pytest.approx(values, abs=1e-6)
    assert result["views"]["ood"]["sd"] == pytest.approx(np.std(values, ddof=1), abs=2e-6)
    assert (result["replicates"], result["benchmarks"]) == ("2 folds", FOLDS)
    with pytest.raises(FarshiftError, match="two runs are on the same benchmark"):
        fs.replicates(runs[0], runs[0])
    with pytest.raises(FarshiftError, match="name one run"):
        fs.replicates()


def test_a_single_seed_has_no_standard_deviation(tmp_path):
    result = fs.replicates(fs.evaluate(models.Adder, on=FOLDS[0], seeds=1, out=tmp_path / "r"))
    assert result["views"]["ood"]["sd"] is None
