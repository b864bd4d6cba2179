"""Each figure says what the records say."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.plot import make_figure
from farshift.benchmarks.plot.id_ood import choose_ticks, compute_limits
from farshift.benchmarks.scoring.record import SeverityPoint, ViewScores
from farshift.benchmarks.statistics.interval import NotAvailable
from hypothesis import given
from hypothesis import strategies as st
from pictures import line, names, note, points
from records import estimate, many, record
from scipy.special import expit, logit


def first_axes(records, what):
    return make_figure(records, what).axes[0]


NOISE = {"kind": "corrupted-label", "benchmark": "modadd97/xi35", "metric": "accuracy@1"}


def rows(axes):
    """The names beside the rows, from the top."""
    return [text.get_text() for text in axes.get_yticklabels()]


@pytest.mark.parametrize(
    ("what", "views", "settings"),
    [("gap", ["id", "ood"], {}), ("noise", ["memorised", "restored", "fit_clean", "id"], NOISE)],
)
def test_every_score_is_a_point_with_its_interval_in_its_models_row(what, views, settings):
    records = many(12, **settings)
    axes = first_axes(records, what)
    shown = points(axes)
    assert len(shown) == 12 * len(views)
    for item in records:
        for view in views:
            (result,) = shown[f"{item.model}, {view}"]
            expected = item.views[view]
            assert result["x"] == expected.value
            assert result["x bar"] == pytest.approx([expected.low, expected.high], abs=1e-12)
            assert rows(axes)[round(result["y"])] == item.model


def test_the_best_ood_score_stands_on_top():
    errors = [
        record(name, metric="rmse@1", better="lower", bounds=None, ood=ood) for name, ood in (("a", 0.7), ("b", 0.2))
    ]
    assert rows(first_axes(errors, "gap")) == ["b", "a"]
    axes = first_axes([record("b", ood=0.2), record("a", ood=0.7), record("c", ood=0.2)], "gap")
    assert rows(axes) == ["a", "b", "c"]
    low, high = axes.get_ylim()
    assert low > high


def test_the_gap_stands_beside_its_row_with_an_interval_of_its_own():
    records = [record("big", id=0.9, ood=0.2), record("none", id=0.5, ood=0.52)]
    (right,) = first_axes(records, "gap").child_axes
    texts = [text.get_text() for text in right.get_yticklabels()]
    assert texts == ["gap (points)", "−2.0 [−4.8, 0.8]", "70.0 [67.2, 72.8]"]
    assert list(right.get_yticks()) == [-1, 0, 1]


def test_id_and_ood_are_joined():
    (axes,) = (first_axes([record("lstm", id=0.9, ood=0.2)], "gap"),)
    assert [[0.9, 0.0], [0.2, 0.0]] in [each.get_xydata().tolist() for each in axes.lines]


def test_overlapping_intervals_stand_one_above_the_other():
    axes = first_axes([record("same", id=0.5, ood=0.5), record("apart", id=0.9, ood=0.1)], "gap")
    heights = {s.get_label(): s[0].get_transform().transform((0.5, 0))[1] for s in axes.containers}
    assert heights["same, id"] > heights["same, ood"]
    assert heights["apart, id"] == heights["apart, ood"]


def test_panels_of_several_benchmarks_stand_one_above_the_other():
    shown = make_figure(many(2) + many(3, "prefix_sums/32_to_64"), "gap")
    assert [axes.get_title("left") for axes in shown.axes] == ["scan/length", "prefix_sums/32_to_64"]
    assert [len(rows(axes)) for axes in shown.axes] == [2, 3]
    assert shown.axes[0].get_position().y0 > shown.axes[1].get_position().y1


def test_the_noise_legend_says_what_each_share_is():
    shown = make_figure(many(2, **NOISE), "noise")
    assert [name.split(" (")[0] for name in names(shown)] == ["memorised", "restored", "fit_clean", "ID"]
    assert note(shown).startswith("Bars: 95% t interval over rows and 5 training seeds.")


def test_a_score_that_there_is_not_is_named_with_the_reason():
    lacking = record("knn", **NOISE)
    without = NotAvailable("no predictions for the training part")
    lacking = replace(lacking, views={**lacking.views, "memorised": without})
    with pytest.raises(FarshiftError, match=r"knn on modadd97/xi35 has no score 'memorised': no predictions for"):
        make_figure([record(**NOISE), lacking], "noise")


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


shares = st.floats(0, 1)


@pytest.mark.parametrize("count", [1, 3, 12])
def test_every_model_is_a_point_with_intervals_both_ways(count):
    records = many(count, reach=0.004)
    (axes,) = make_figure(records, "id_ood").axes
    shown = points(axes)
    assert list(shown) == [item.model for item in records]
    for item in records:
        (result,) = shown[item.model]
        assert (result["x"], result["y"]) == (item.id.value, item.ood.value)
        for view, bar in (("id", "x bar"), ("ood", "y bar")):
            assert result[bar] == pytest.approx([getattr(item, view).low, getattr(item, view).high], abs=1e-12)


def test_both_axes_are_logit_with_the_same_limits_and_ticks_in_percent():
    (axes,) = make_figure(many(3), "id_ood").axes
    assert (axes.get_xscale(), axes.get_yscale()) == ("logit", "logit")
    assert axes.get_xlim() == axes.get_ylim()
    for axis in (axes.xaxis, axes.yaxis):
        texts = [float(text.get_text()) for text in axis.get_ticklabels()]
        assert texts == pytest.approx([100 * tick for tick in axis.get_ticklocs()])
        assert len(texts) >= 3


def test_the_line_is_the_least_squares_line_of_the_empirical_logits():
    records = many(12)
    shown = make_figure(records, "id_ood")
    right = [[getattr(item, view).value * 900 for item in records] for view in ("id", "ood")]
    x, y = (np.log((np.array(k) + 0.5) / (900 - np.array(k) + 0.5)) for k in right)
    slope, intercept = np.polyfit(x, y, 1)
    drawn = line(shown.axes[0], "least squares")
    assert logit(drawn.get_ydata()) == pytest.approx(intercept + slope * logit(drawn.get_xdata()), abs=1e-9)
    assert f"logit(OOD) = {intercept:.2f} + {slope:.2f} logit(ID)".replace("-", "−") in note(shown)


@pytest.mark.parametrize("ids", [[0.9], [0.9, 0.8], [0.9, 0.8, 0.8]])
def test_fewer_than_three_different_id_scores_have_no_line(ids):
    records = [record(f"m{k}", id=value, ood=0.1 * k) for k, value in enumerate(ids)]
    shown = make_figure(records, "id_ood")
    assert [each for each in shown.axes[0].lines if each.get_label() == "least squares"] == []
    assert "least squares" not in note(shown)


def test_a_nearly_vertical_line_is_cut_at_the_frame():
    records = [record(f"m{k}", id=0.9 + 1e-6 * k, ood=ood) for k, ood in enumerate((0.1, 0.5, 0.95))]
    (axes,) = make_figure(records, "id_ood").axes
    low, high = axes.get_ylim()
    drawn = line(axes, "least squares")
    assert list(drawn.get_ydata()) == pytest.approx([low, high], rel=1e-6)
    assert all(low <= x <= high for x in drawn.get_xdata())


def test_scores_of_0_and_1_are_drawn_half_a_row_inside_and_the_note_says_so():
    shown = make_figure([record("all", id=1.0, ood=0.0, rows=900), record("some")], "id_ood")
    (result,) = points(shown.axes[0])["all"]
    assert (result["x"], result["y"]) == pytest.approx((1 - 0.5 / 901, 0.5 / 901))
    assert "Scores of 0 and 100 % are drawn half a row inside." in note(shown)
    assert "half a row" not in note(make_figure([record("some")], "id_ood"))


def test_a_metric_outside_0_to_1_is_refused():
    with pytest.raises(FarshiftError, match=r"^rmse of scan/length does not lie in \[0, 1\]"):
        make_figure([record(metric="rmse@1", bounds=None)], "id_ood")
    with pytest.raises(FarshiftError, match=r"^brier of scan/length"):
        make_figure([record(metric="brier@1", better="lower", bounds=[0.0, 2.0])], "id_ood")


@given(st.lists(st.tuples(shares, st.floats(0.001, 0.2)), min_size=1, max_size=12))
def test_the_limits_hold_every_point_and_every_end_of_an_interval_inside_the_scale(models):
    result = [estimate(value, reach) for value, reach in models]
    low, high = compute_limits(result)
    assert 0 < low < high < 1
    assert logit(high) - logit(low) >= 2 - 1e-9
    for each in result:
        assert low < min(max(each.value, 0.5 / 901), 1 - 0.5 / 901) < high
        for end in (each.low, each.high):
            assert low < end < high or end in (0, 1) or min(end, 1 - end) < 0.5 / 901


@given(st.floats(-8, 6), st.floats(2, 16))
def test_ticks_lie_within_the_limits_and_stand_clear_of_each_other(start, span):
    low, high = expit(start), expit(start + span)
    result = choose_ticks(low, high)
    assert result == sorted(result)
    assert all(low <= tick <= high for tick in result)
    gaps = np.diff(logit(result))
    assert (gaps >= 0.13 * span * (1 - 1e-9)).all()
    if start >= -6 and start + span <= 6:
        assert len(result) >= 2


def test_every_filled_bin_is_a_point_at_its_confidence_and_accuracy():
    item = record(probabilities=True)
    above, _ = make_figure([item], "calibration").axes
    for view in ("id", "ood"):
        bins = [part for part in item.calibration[view].bins if part.rows]
        assert len(bins) < 15
        expected = [[part.confidence, part.accuracy] for part in bins]
        assert line(above, view).get_xydata().tolist() == expected


def test_bars_beneath_are_the_shares_of_the_rows():
    item = record(probabilities=True)
    _, beneath = make_figure([item], "calibration").axes
    for series in beneath.containers:
        bins = [part for part in item.calibration[series.get_label()].bins if part.rows]
        total = sum(part.rows for part in bins)
        assert [bar.get_height() * total for bar in series] == pytest.approx([part.rows for part in bins])
        for bar, part in zip(series, bins, strict=True):
            assert part.low - 1e-9 <= bar.get_x()
            assert bar.get_x() + bar.get_width() <= part.high + 1e-9
    assert [series.get_label() for series in beneath.containers] == ["id", "ood"]


def test_the_head_names_the_model_the_benchmark_the_ece_and_the_rows():
    above, _ = make_figure([record("lstm", probabilities=True)], "calibration").axes
    assert above.get_title().split("\n") == [
        "lstm",
        "scan/length",
        "ECE: ID 0.031, OOD 0.214",
        "n: ID 4,500, OOD 18,000",
    ]
    assert names(above.get_figure()) == ["ID", "OOD"]


def test_every_model_has_a_diagram_of_the_same_size():
    records = many(3, probabilities=True) + many(1, "prefix_sums/32_to_64", probabilities=True)
    axes = make_figure(records, "calibration").axes
    assert len(axes) == 8
    heads = [above.get_title().split("\n")[:2] for above in axes[::2]]
    assert heads == [[item.model, item.benchmark] for item in records]
    for kind in (axes[::2], axes[1::2]):
        assert {(round(a.get_position().width, 6), round(a.get_position().height, 6)) for a in kind} == {
            (round(kind[0].get_position().width, 6), round(kind[0].get_position().height, 6))
        }


def test_one_view_alone_is_drawn_alone_and_the_ece_is_that_of_the_score():
    item = record(probabilities=True)
    measured = ViewScores(*(replace(item.id, value=value) for value in (0.039, 0.225, 0.186)))
    item = replace(item, calibration={"ood": item.calibration["ood"]})
    above, beneath = make_figure([item, replace(item, metrics={"ece@1": measured})], "calibration").axes[:2]
    assert [series.get_label() for series in beneath.containers] == ["ood"]
    heads = [axes.get_title() for axes in above.get_figure().axes[::2]]
    assert "ECE: OOD 0.214" in heads[0] and "ECE: OOD 0.225" in heads[1], "the score's own error where it has one"
