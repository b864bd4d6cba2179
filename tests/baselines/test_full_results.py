"""Results under the full budget: kept beside those under the quick one, by the same names, and what they would take."""

from __future__ import annotations

import json

import farshift as fs
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from farshift.baselines.recipe import recipe
from farshift.baselines.running import results as results_module
from farshift.baselines.running.full_costs import FullCost, full_costs, left_to_record
from farshift.baselines.running.recorded_scores import keep, kept_scores, rescored
from farshift.baselines.running.results import home_of, record, recorded, results
from farshift.baselines.running.sweep import run_baseline
from farshift.cli import runs as cli_runs
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
    place = tmp_path_factory.mktemp("runs")
    return {
        budget: run_baseline("mlp", ON, seeds=[0], steps=steps, budget=budget, out=place / budget)
        for budget, steps in (("quick", 2), ("full", 6))
    }


def test_a_result_is_kept_where_those_of_its_budget_are(home, runs):
    files = {budget: record(run) for budget, run in runs.items()}
    assert files == {
        "quick": home / "modadd97__xi35" / "mlp.parquet",
        "full": home / "full" / "modadd97__xi35" / "mlp.parquet",
    }
    assert results(home_of("quick")) == results(home_of("full")) == [(ON, "mlp")]
    for budget, run in runs.items():
        found = recorded(ON, "mlp", budget=budget)
        assert (found.budget, found.steps) == (budget, run.steps)
        assert fs.score(found).ood == fs.score(run).ood


def test_the_command_line_names_a_result_under_the_full_budget(home, runs):
    for run in runs.values():
        record(run)
    paths = {cli_runs.run_path(f"baseline:{name}@{ON}") for name in ("mlp", "mlp:quick", "mlp:full")}
    assert {fs.read_run(path).budget for path in paths} == {"quick", "full"}
    with pytest.raises(UnknownName, match="no budget named 'ful'"):
        cli_runs.run_path(f"baseline:mlp:ful@{ON}")


def test_results_under_the_full_budget_alone_are_refused_as_such(home, runs):
    record(runs["quick"])
    with pytest.raises(UnknownName, match="under the budget full"):
        recorded(ON, "mlp", budget="full")


def test_scores_of_both_budgets_are_kept_apart(home, runs):
    for budget, run in runs.items():
        record(run)
        keep(rescored(ON, "mlp", home_of(budget)), home_of(budget))
    for budget in runs:
        assert kept_scores(ON, home_of(budget))["mlp"].budget == budget


def _spends(place, seconds: float, training: float, seeds: int) -> None:
    """Make a recorded result say that it took so long."""
    table = pq.read_table(place)
    card = json.loads(table.schema.metadata[b"farshift"])
    card["spent"] = {"seconds": seconds, "by_seed": {f"seed_{k}": {"fit_seconds": training} for k in range(seeds)}}
    card["budget"] = {"name": card["budget"]["name"], "seeds": [*range(seeds)], "device": "cpu"}
    pq.write_table(table.replace_schema_metadata({b"farshift": json.dumps(card).encode()}), place)
    assert isinstance(table, pa.Table)


def test_an_estimate_is_longer_by_the_training_alone(home, runs):
    _spends(record(runs["quick"]), seconds=70.0, training=10.0, seeds=5)
    steps = {budget: recipe("mlp").steps(budget, ON) for budget in ("quick", "full")}
    expected = 20 + 50 * steps["full"] / steps["quick"]
    (found,) = full_costs()
    assert found == FullCost(ON, "mlp", 5, 70.0, pytest.approx(expected), False)
    _spends(record(runs["full"]), seconds=123.0, training=1.0, seeds=5)
    assert [(one.full, one.recorded) for one in full_costs(ON)] == [(123.0, True)]
    with pytest.raises(UnknownName, match="scan"):
        full_costs("scan/lenght")


def test_what_is_left_counts_hours_of_what_is_short_and_names_what_is_long():
    costs = [
        FullCost("a", "one", 5, 9.0, 720.0, False),
        FullCost("a", "two", 5, 9.0, 1801.0, False),
        FullCost("a", "three", 5, 9.0, 1080.0, False),
        FullCost("a", "four", 5, 9.0, 5000.0, True),
        FullCost("b", "one", 5, 9.0, 36.0, True),
    ]
    a, b = left_to_record(costs)
    assert (a.recorded, a.of, a.hours, a.long) == (1, 4, pytest.approx(0.5), ("two",))
    assert (b.recorded, b.of, b.hours, b.long) == (1, 1, 0, ())


def test_the_commands_list_both_budgets(farshift, farshift_json):
    costs = farshift_json("baselines", "costs", "--on", "scan/length")
    assert {"benchmark", "baseline", "seeds", "quick", "full", "recorded"} == set(costs[0])
    assert "hours of one process are left" in farshift("baselines", "costs").stdout
    for budget in ("quick", "full"):
        found = farshift_json("baselines", "results", "--budget", budget, "--all")
        assert {one["budget"] for one in found} <= {budget}
