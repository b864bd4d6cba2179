"""Results under the full budget: kept beside those under the quick one, by the same names, and what they would take."""

from __future__ import annotations

import farshift as fs
import pytest
from farshift.baselines.running import results as results_module
from farshift.baselines.running.recorded_scores import read_recorded_scores, rescore_recorded, write_recorded_score
from farshift.baselines.running.results import find_recorded_run, get_results_home, list_results, record_run
from farshift.baselines.running.sweep import run_baseline
from farshift.cli.options import parse_run_path
from farshift.core.errors import UnknownName

ON = "modadd97/xi35"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty place for recorded results."""
    monkeypatch.setattr(results_module, "HOME", tmp_path / "results")
    return tmp_path / "results"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One baseline under both budgets, so short that steps are all they differ in."""
    position = tmp_path_factory.mktemp("runs")
    return {
        budget: run_baseline("mlp", ON, seeds=[0], steps=steps, budget=budget, out=position / budget)
        for budget, steps in (("quick", 2), ("full", 6))
    }


def test_a_result_is_kept_where_those_of_its_budget_are(home, runs):
    files = {budget: record_run(run) for budget, run in runs.items()}
    assert files == {
        "quick": home / "modadd97__xi35" / "mlp.parquet",
        "full": home / "full" / "modadd97__xi35" / "mlp.parquet",
    }
    assert list_results(get_results_home("quick")) == list_results(get_results_home("full")) == [(ON, "mlp")]
    for budget, run in runs.items():
        result = find_recorded_run(ON, "mlp", budget=budget)
        assert (result.budget, result.steps) == (budget, run.steps)
        assert fs.score(result).ood == fs.score(run).ood


def test_the_command_line_names_a_result_under_the_full_budget(home, runs):
    for run in runs.values():
        record_run(run)
    paths = {parse_run_path(f"baseline:{name}@{ON}") for name in ("mlp", "mlp:quick", "mlp:full")}
    assert {fs.read_run(path).budget for path in paths} == {"quick", "full"}
    with pytest.raises(UnknownName, match="no budget named 'ful'"):
        parse_run_path(f"baseline:mlp:ful@{ON}")


def test_results_under_the_full_budget_alone_are_refused_as_such(home, runs):
    record_run(runs["quick"])
    with pytest.raises(UnknownName, match="under the budget full"):
        find_recorded_run(ON, "mlp", budget="full")


def test_scores_of_both_budgets_are_kept_apart(home, runs):
    for budget, run in runs.items():
        record_run(run)
        write_recorded_score(rescore_recorded(ON, "mlp", get_results_home(budget)), get_results_home(budget))
    for budget in runs:
        assert read_recorded_scores(ON, get_results_home(budget))["mlp"].budget == budget
