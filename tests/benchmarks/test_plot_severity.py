"""The severity picture says what the records say."""

from __future__ import annotations

import pytest
from farshift import FarshiftError
from farshift.benchmarks.plot import make_figure
from farshift.benchmarks.scoring.record import SeverityPoint
from pictures import names, note, points
from records import estimate, many, record


def bucket(view, low, high, value):
    return SeverityPoint(view, low, high, estimate(value))


@pytest.mark.parametrize("count", [1, 3, 12])
def test_every_bucket_is_a_point_with_its_interval(count):
    records = many(count)
    (axes,) = make_figure(records, "severity").axes
    shown = points(axes)
    assert len(shown) == 2 * count
    for item in records:
        for view in ("id", "ood"):
            expected = [point for point in item.severity if point.view == view]
            for result, point in zip(shown[f"{item.model}, {view}"], expected, strict=True):
                assert result["x"] == (point.first + point.last) / 2
                assert result["y"] == point.estimate.value
                assert result["y bar"] == pytest.approx([point.estimate.low, point.estimate.high], abs=1e-12)


def test_the_training_range_is_that_of_the_id_rows():
    item = record(severity=[bucket("id", 2, 9, 0.9), bucket("id", 10, 22, 0.8), bucket("ood", 24, 48, 0.3)])
    (axes,) = make_figure([item], "severity").axes
    (span,) = axes.patches
    assert (span.get_x(), span.get_width()) == (2, 20)
    (edge,) = [each for each in axes.lines if set(each.get_xdata()) == {22}]
    assert list(edge.get_ydata()) == [0, 1]


def test_one_line_runs_from_id_to_ood_where_ood_lies_beyond():
    item = record(severity=[bucket("id", 2, 22, 0.9), bucket("ood", 24, 30, 0.5), bucket("ood", 31, 49, 0.3)])
    (axes,) = make_figure([item], "severity").axes
    paths = [
        each.get_xydata().tolist() for each in axes.lines if len(each.get_xydata()) > 1 and each.get_marker() == "None"
    ]
    assert [[12, 0.9], [27, 0.5], [40, 0.3]] in paths


def test_id_and_ood_at_one_severity_are_two_lines():
    both = [bucket("id", 0, 0, 0.9), bucket("id", 1, 1, 0.8), bucket("ood", 1, 1, 0.3), bucket("ood", 2, 2, 0.1)]
    (axes,) = make_figure([record(severity=both)], "severity").axes
    paths = [each.get_xydata().tolist() for each in axes.lines]
    assert [[0, 0.9], [1, 0.8]] in paths
    assert [[1, 0.3], [2, 0.1]] in paths


def test_id_points_are_hollow_and_ood_points_are_filled():
    (axes,) = make_figure(many(2), "severity").axes
    faces = {series.get_label(): series[0].get_markerfacecolor() for series in axes.containers}
    assert faces["lstm, id"] == faces["transformer, id"] == "white"
    assert "white" not in (faces["lstm, ood"], faces["transformer, ood"])


def test_the_axes_name_the_metric_the_severity_and_the_percent():
    (axes,) = make_figure([record(severity_unit="output length, actions")], "severity").axes
    assert axes.get_ylabel() == "exact_match (%)"
    assert axes.get_xlabel() == "severity (output length, actions)"
    assert axes.get_title("left") == "scan/length"
    assert "100" in [text.get_text() for text in axes.get_yticklabels()]


def test_a_metric_without_bounds_is_shown_as_it_is():
    curve = [bucket("id", 1, 1, 0.31), bucket("ood", 2, 2, 0.52)]
    (axes,) = make_figure([record(metric="rmse@1", better="lower", bounds=None, severity=curve)], "severity").axes
    assert axes.get_ylabel() == "rmse, lower is better"
    ticks = [float(text.get_text()) for text in axes.get_yticklabels()]
    assert min(ticks) > 0.1 and max(ticks) < 1


def test_several_benchmarks_are_several_panels_with_one_legend():
    records = many(3) + many(2, "prefix_sums/32_to_64")
    shown = make_figure(records, "severity")
    assert [axes.get_title("left") for axes in shown.axes] == ["scan/length", "prefix_sums/32_to_64"]
    assert names(shown) == [item.model for item in many(3)]
    styles = [{s.get_label(): (s[0].get_color(), s[0].get_marker()) for s in axes.containers} for axes in shown.axes]
    assert styles[1].items() <= styles[0].items()


def test_the_note_says_what_the_bars_are():
    assert "Bars: 95% t interval over rows and 5 training seeds." in note(make_figure(many(2), "severity"))
    mixed = note(make_figure([record("lstm"), record("mlp"), record("knn", seeds=1)], "severity"))
    assert "5 training seeds; for knn: 95% t interval over rows only (one seed" in mixed


def test_a_benchmark_without_severity_is_named():
    records = [record(), record(benchmark="optdigits/writers", kind="domain")]
    with pytest.raises(FarshiftError, match=r"^optdigits/writers: rows have no severity"):
        make_figure(records, "severity")


def test_a_bar_of_a_perfect_score_is_inside_the_axes():
    (axes,) = make_figure([record("best", id=1.0, ood=1.0), record("worst", id=0.0, ood=0.0)], "severity").axes
    low, high = axes.get_ylim()
    assert low < 0 and high > 1
