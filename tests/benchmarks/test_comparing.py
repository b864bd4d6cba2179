"""`farshift compare` in full: overall, along severity, by group, with exact tests and a picture."""

from __future__ import annotations

import sys
from pathlib import Path

import farshift as fs
import numpy as np
import pytest
from farshift import FarshiftError, compare
from farshift.benchmarks.comparison.compare_full import compare_in_full
from farshift.benchmarks.plot._compare import draw_comparison, make_comparison_figure
from scipy import stats

sys.path.insert(0, str(Path(__file__).parent))
import models
from pictures import faults, points
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


def made(groups: int, severities: int, single: bool = False) -> dict:
    """A comparison as `compare_in_full` gives it, made up."""
    draws = np.random.default_rng(groups + severities)

    def difference(value: float) -> dict:
        return {"value": value, "low": value - 0.05, "high": value + 0.05, "rows": 100, "distinguishable": None}

    return {
        "left": "a model with a rather long name",
        "right": "another one",
        "benchmark": "somewhere/else",
        "metric": "accuracy@1",
        "better": "higher",
        "bounds": [0.0, 1.0],
        "severity_unit": "output length, actions",
        "interval": "left minus right; 95% t interval over paired rows and the training seeds of both",
        "difference": {name: difference(draws.normal(0, 0.1)) for name in ("id", "ood", "gap")},
        "severity": [
            {"view": "id" if k < severities / 3 else "ood", "from": k, "to": k, **difference(draws.normal(0, 0.1))}
            for k in range(severities)
        ],
        "groups": {f"group number {k}": difference(draws.normal(0, 0.1)) for k in range(groups)},
    }


@pytest.mark.parametrize(("groups", "severities"), [(0, 0), (5, 0), (0, 8), (7, 9), (38, 8), (200, 0)])
def test_the_picture_is_legible_whatever_there_is_to_show(groups, severities):
    pytest.importorskip("matplotlib")
    assert faults(make_comparison_figure(made(groups, severities))) == []


def test_the_picture_shows_the_differences_in_points_of_percent():
    pytest.importorskip("matplotlib")
    result = made(3, 6)
    shown = make_comparison_figure(result)
    overall, along, by_group = shown.axes
    assert points(overall)["ood"][0]["x"] == pytest.approx(100 * result["difference"]["ood"]["value"])
    assert sum(len(series) for series in points(along).values()) == 6
    names = [text.get_text() for text in by_group.get_yticklabels()]
    values = [result["groups"][name]["value"] for name in names]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf"])
def test_the_same_comparison_gives_the_same_file(tmp_path, suffix):
    pytest.importorskip("matplotlib")
    item, other = (draw_comparison(made(4, 6), tmp_path / f"{k}{suffix}").read_bytes() for k in range(2))
    assert item == other


def test_the_command_draws_and_prints_it(runs, farshift, tmp_path):
    pytest.importorskip("matplotlib")
    done = farshift("compare", runs["echo"], runs["silent"], "--full", "--plot", tmp_path / "c.svg")
    assert done.returncode == 0, done.stderr
    assert "ood at severity" in done.stdout
    assert done.stdout.rstrip().endswith("c.svg")
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")
    refused = farshift("compare", runs["echo"], runs["silent"], "--plot", tmp_path / "c.gif")
    assert "a figure is written as .pdf, .png or .svg" in refused.stderr


def test_runs_of_different_benchmarks_are_refused(runs):
    with pytest.raises(FarshiftError, match="these runs cannot be compared"):
        compare_in_full(runs["good"], runs["echo"])
