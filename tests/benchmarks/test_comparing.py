"""`farshift compare` in full: overall, along severity, by group, with exact tests."""

from __future__ import annotations

from pathlib import Path

import farshift as fs
import models
import numpy as np
import pytest
from farshift import FarshiftError, compare
from farshift.benchmarks.comparison.compare import compare_in_full
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
