"""The picture of OOD against ID says what the records say, on logit axes."""

from __future__ import annotations

import numpy as np
import pytest
from farshift import FarshiftError
from farshift.benchmarks.plot import make_figure
from farshift.benchmarks.plot.id_ood import choose_ticks, compute_limits
from hypothesis import given
from hypothesis import strategies as st
from pictures import line, names, note, points
from records import estimate, many, record
from scipy.special import expit, logit

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


def test_a_falling_line_is_written_with_a_minus():
    records = [record(name, id=i, ood=o) for name, i, o in (("a", 0.5, 0.9), ("b", 0.7, 0.5), ("c", 0.9, 0.1))]
    assert "logit(OOD) = 1.99 − 1.97 logit(ID)" in note(make_figure(records, "id_ood"))


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


def test_models_are_named_in_a_legend():
    crowd = [record(f"model-{k}", id=0.9 + 0.0001 * k, ood=0.2) for k in range(4)]
    assert names(make_figure(crowd, "id_ood")) == ["model-0", "model-1", "model-2", "model-3"]


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
