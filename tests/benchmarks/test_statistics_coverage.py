"""95 % intervals hold the truth as often as they say in simulated experiments (tests/simulation)."""

from __future__ import annotations

import pytest
from simulation.clustered import World, measure
from simulation.intervals import SETTINGS, coverage, report

TRIALS = 500


@pytest.mark.slow
@pytest.mark.parametrize("name", SETTINGS)
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    """Within the goal, and three standard errors of a simulation of so few trials; all settings together closer."""
    rows = list(coverage(name, TRIALS if name != "few rows" else TRIALS // 5))
    for row in rows:
        low, high = row.get("goal", (0.93, 0.97))
        assert low - 3 * row["mc_se"] <= row["coverage"] <= high + 3 * row["mc_se"], row
    if "seeds" in name or name == "few rows":
        return
    mean = sum(row["coverage"] for row in rows) / len(rows)
    spare = 3 * (0.95 * 0.05 / TRIALS / len(rows)) ** 0.5
    assert 0.94 - spare <= mean <= 0.965 + spare


def test_the_report_is_the_same_each_time_and_names_each_setting_once():
    first, again = report(3), report(3)
    assert first == again
    assert len({(row["what"], row["setting"]) for row in first}) == len(first) == sum(map(len, SETTINGS.values()))
    assert all(0 <= row["coverage"] <= 1 for row in first)


@pytest.mark.slow
@pytest.mark.parametrize(
    "world", [World("macro_f1", 8), World("auroc", 20), World("ece", 8, even=True), World("pearson", 8)], ids=str
)
def test_metrics_over_clusters_hold_the_truth_and_are_no_wider_than_need_be(world):
    """Within the goal, and three standard errors of a simulation of so few trials."""
    for row in measure(world, TRIALS // 5):
        low, high = row["goal"]
        assert low - 3 * row["mc_se"] <= row["coverage"] <= high + 3 * row["mc_se"], row
