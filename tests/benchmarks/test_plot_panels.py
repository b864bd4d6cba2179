"""Only what can be compared shares a panel, and every panel says what it is."""

from __future__ import annotations

import pytest
from farshift import FarshiftError
from farshift.benchmarks.plot import make_figure
from farshift.benchmarks.plot._panels import format_estimate, make_panels
from farshift.benchmarks.scoring.record import Score
from farshift.benchmarks.statistics.interval import Interval
from farshift.core.errors import BadRun
from pictures import note
from records import estimate, many, record


def titles(records):
    return [panel.title for panel in make_panels(records)]


def test_records_of_one_entry_identity_share_a_panel_in_their_order():
    (panel,) = make_panels(many(5))
    assert panel.names == tuple(item.model for item in many(5))


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"budget": "quick"}, ["scan/length", "scan/length (quick)"]),
        ({"steps": 1500}, ["scan/length", "scan/length (1,500 steps)"]),
        ({"budget": "quick", "steps": 20}, ["scan/length", "scan/length (quick, 20 steps)"]),
        ({"benchmark": "scan/addprim_jump"}, ["scan/length", "scan/addprim_jump"]),
        ({"identity": "cd" * 32}, ["scan/length, identity d78b35ce", "scan/length, identity cdcdcdcd"]),
        (
            {"identity": "cd" * 32, "selection": "oracle"},
            ["scan/length, selected by last", "scan/length, selected by oracle"],
        ),
        ({"selection": "oracle"}, ["scan/length, selected by last", "scan/length, selected by oracle"]),
    ],
)
def test_records_that_cannot_be_compared_never_share_a_panel(other, expected):
    assert titles([record(), record("mlp", **other), record("knn")]) == expected


def test_an_unusual_selection_rule_is_always_named():
    assert titles([record(selection="oracle")]) == ["scan/length, selected by oracle"]


def test_panels_of_one_benchmark_are_said_not_to_be_comparable():
    apart = "scan/length: entries with different identities are not comparable."
    assert note(make_figure([record(), record(budget="quick")], "gap")).endswith(apart)
    assert "not comparable" not in note(make_figure([record(), record(benchmark="a/b")], "gap"))


def test_two_metrics_in_one_panel_are_refused():
    records = [record("lstm"), record("mlp", metric="token_accuracy@1")]
    for what in ("gap", "id_ood", "severity"):
        with pytest.raises(
            FarshiftError, match=r"^scan/length: lstm is scored by exact_match@1 and mlp by token_accuracy@1"
        ):
            make_figure(records, what)


def test_two_benchmarks_may_have_two_metrics():
    shown = make_figure([record(), record(benchmark="a/b", metric="rmse@1", better="lower", bounds=None)], "gap")
    assert [axes.get_xlabel() for axes in shown.axes] == ["exact_match (%)", "rmse, lower is better"]


def test_runs_of_one_name_are_numbered():
    (panel,) = make_panels([record("lstm"), record("mlp"), record("lstm"), record("lstm (1)")])
    assert panel.names == ("lstm (2)", "mlp", "lstm (3)", "lstm (1)")


def test_a_name_of_several_lines_is_one_line():
    (panel,) = make_panels([record("my\n  model\t2")])
    assert panel.names == ("my model 2",)


def test_no_record_at_all_is_refused():
    for what in ("calibration", "gap", "id_ood", "noise", "severity"):
        with pytest.raises(FarshiftError, match="no score records given"):
            make_figure([], what)


def test_a_record_of_another_version_is_named_with_what_it_lacks():
    old = {key: value for key, value in record("lstm").to_dict().items() if key not in ("bounds", "selection")}
    with pytest.raises(BadRun, match=r"lstm on scan/length lacks selection, bounds: score the run again"):
        Score.from_dict(old)


@pytest.mark.parametrize(
    ("found", "percent", "expected"),
    [
        (estimate(0.95318, 0.012), True, "95.3 [94.1, 96.5]"),
        (Interval(-0.0004, -0.03, 0.0292), True, "0.0 [-3.0, 2.9]"),
        (Interval(1234.5, 1204.2, 1264.8), False, "1234 [1204, 1265]"),
        (Interval(0.0312, 0.0301, 0.0323), False, "0.0312 [0.0301, 0.0323]"),
        (Interval(2.0, 2.0, 2.0), False, "2.000 [2.000, 2.000]"),
    ],
)
def test_numbers_have_the_digits_that_their_interval_warrants(found, percent, expected):
    assert format_estimate(found, percent) == expected
