"""Diagnostics of recorded results: kept only where they are of the recorded networks, and held against OOD scores."""

from __future__ import annotations

import json
from math import isnan, sqrt

import numpy as np
import pytest
from farshift.baselines.running.diagnostics_page import markdown
from farshift.baselines.running.kept_diagnostics import keep_diagnostics, kept_diagnostics
from farshift.baselines.running.outcome_diagnostics import (
    Correlation,
    _correlation,
    _from_others,
    _partial,
    correlations,
    pooled,
)
from farshift.baselines.running.results import record
from farshift.baselines.running.sweep import run_baseline
from farshift.core.errors import BadRun
from support import ROOT

ON = "modadd97/xi35"


def one(benchmark: str, tau: float, partial: float = 0.0) -> Correlation:
    return Correlation("x", benchmark, 10, 30, tau, -1.0, 1.0, partial)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    again = run_baseline("mlp", ON, seeds=[0], steps=4, diagnose="dimension", out=out / "again")
    other = run_baseline("mlp", ON, seeds=[0], steps=40, diagnose="dimension", out=out / "other")
    return again, other


def test_diagnostics_are_kept_beside_the_result_that_the_run_gives_again(runs, tmp_path):
    again, _ = runs
    with pytest.raises(BadRun, match="no result of mlp"):
        keep_diagnostics(again, tmp_path)
    file = record(again, tmp_path)
    keep_diagnostics(again, tmp_path)
    found = kept_diagnostics(ON, tmp_path)["mlp"][0]
    told = again.card.spent.by_seed["seed_0"]
    assert set(found) == {"dimension.participation", "dimension.two_nn"}
    assert found["dimension.participation"] == pytest.approx(told["dimension.participation"], rel=1e-5)
    file.write_bytes(file.read_bytes() + b" ")
    assert kept_diagnostics(ON, tmp_path) == {}


def test_diagnostics_of_other_networks_are_not_kept(runs, tmp_path):
    again, other = runs
    record(again, tmp_path)
    with pytest.raises(BadRun, match="its networks are not those that were recorded"):
        keep_diagnostics(other, tmp_path)
    plain = run_baseline("mlp", ON, seeds=[0], steps=4, out=tmp_path / "plain")
    with pytest.raises(BadRun, match="has no diagnostics: run it with --diagnose all"):
        keep_diagnostics(plain, tmp_path)


def test_a_damaged_file_of_diagnostics_is_named(runs, tmp_path):
    record(runs[0], tmp_path)
    keep_diagnostics(runs[0], tmp_path).write_text(json.dumps({"mlp": 3}))
    with pytest.raises(BadRun, match=r"diagnostics\.json holds no diagnostics"):
        kept_diagnostics(ON, tmp_path)


def test_a_seed_disagrees_with_the_others_on_average():
    answers = {0: np.array([1, 2, 3, 4]), 1: np.array([1, 2, 3, 0]), 2: np.array([0, 0, 3, 0])}
    assert _from_others(answers) == pytest.approx({0: (0.25 + 0.75) / 2, 1: (0.25 + 0.5) / 2, 2: (0.75 + 0.5) / 2})


def test_a_diagnostic_is_held_against_ood_over_means_of_the_seeds_that_have_both():
    ood = {name: {0: place, 1: place + 0.5} for place, name in enumerate("abcdefgh")}
    inside = {name: {1: -place, 7: 1000.0} for place, name in enumerate("abcdefg")}
    found = _correlation("x", ON, inside, ood, ood)
    assert (found.baselines, found.replicas, found.tau) == (7, 7, -1.0)
    assert isnan(found.partial)
    assert _correlation("x", ON, {name: inside[name] for name in "abcdef"}, ood, None) is None
    assert _correlation("x", ON, {name: {0: 1.0} for name in ood}, ood, None) is None


def test_the_partial_correlation_is_what_the_third_does_not_explain():
    assert _partial(0.5, 0.0, 0.0) == 0.5
    assert _partial(0.36, 0.6, 0.6) == pytest.approx(0)
    assert _partial(0.0, 0.5, 0.5) == pytest.approx(-1 / 3)


def test_benchmarks_of_one_source_count_as_one():
    # vowel and optdigits one each, pacs two: the mean is over (0.1, 0.3, mean of 0.4 and 0.6).
    found = [one("vowel/speakers", 0.1), one("optdigits/writers", 0.3), one("pacs/sketch", 0.4), one("pacs/photo", 0.6)]
    (all_of,) = pooled(found)
    assert (all_of.benchmarks, all_of.sources, all_of.baselines, all_of.replicas) == (4, 3, 40, 120)
    middle, low, high = all_of.tau
    assert middle == pytest.approx(0.3)
    assert high - middle == pytest.approx(middle - low) == pytest.approx(4.302653 * 0.2 / sqrt(3), abs=1e-6)
    (two,) = pooled(found[2:])
    assert two.tau[0] == pytest.approx(0.5)
    assert isnan(two.tau[1])


def test_the_page_is_what_the_recorded_results_say():
    found = correlations()
    assert (ROOT / "docs" / "diagnostics.md").read_text("utf-8") == markdown(found)
    by_name = {(one.diagnostic, one.benchmark): one for one in found}
    assert by_name["ID score", "vowel/speakers"].tau > 0.5
    assert by_name["ID score", "colored_mnist_irm/color"].tau < -0.5
