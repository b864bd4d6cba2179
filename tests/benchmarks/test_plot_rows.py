"""The pictures with a row per model, gap and noise, say what the records say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farshift import FarshiftError
from farshift.benchmarks.plot import make_figure
from farshift.benchmarks.statistics.interval import NotAvailable
from pictures import names, note, points
from records import many, record

NOISE = {"kind": "corrupted-label", "benchmark": "modadd97/xi35", "metric": "accuracy@1"}


def panel(records, what):
    return make_figure(records, what).axes[0]


def rows(axes):
    """The names beside the rows, from the top."""
    return [text.get_text() for text in axes.get_yticklabels()]


@pytest.mark.parametrize(
    ("what", "views", "settings"),
    [("gap", ["id", "ood"], {}), ("noise", ["memorised", "restored", "fit_clean", "id"], NOISE)],
)
def test_every_score_is_a_point_with_its_interval_in_its_models_row(what, views, settings):
    records = many(12, **settings)
    axes = panel(records, what)
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
    axes = panel([record("b", ood=0.2), record("a", ood=0.7), record("c", ood=0.2)], "gap")
    assert rows(axes) == ["a", "b", "c"]
    low, high = axes.get_ylim()
    assert low > high


def test_the_least_error_stands_on_top():
    records = [
        record(name, metric="rmse@1", better="lower", bounds=None, ood=ood) for name, ood in (("a", 0.7), ("b", 0.2))
    ]
    assert rows(panel(records, "gap")) == ["b", "a"]


def test_the_gap_stands_beside_its_row_with_an_interval_of_its_own():
    records = [record("big", id=0.9, ood=0.2), record("none", id=0.5, ood=0.52)]
    (right,) = panel(records, "gap").child_axes
    texts = [text.get_text() for text in right.get_yticklabels()]
    assert texts == ["gap (points)", "−2.0 [−4.8, 0.8]", "70.0 [67.2, 72.8]"]
    assert list(right.get_yticks()) == [-1, 0, 1]


def test_id_and_ood_are_joined():
    (axes,) = (panel([record("lstm", id=0.9, ood=0.2)], "gap"),)
    assert [[0.9, 0.0], [0.2, 0.0]] in [each.get_xydata().tolist() for each in axes.lines]


def test_overlapping_intervals_stand_one_above_the_other():
    axes = panel([record("same", id=0.5, ood=0.5), record("apart", id=0.9, ood=0.1)], "gap")
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


def test_noise_is_of_corrupted_labels_alone():
    with pytest.raises(FarshiftError, match=r"^scan/length \(length\): .* requires corrupted-label benchmarks"):
        make_figure([*many(1, **NOISE), record()], "noise")


def test_a_score_that_there_is_not_is_named_with_the_reason():
    lacking = record("knn", **NOISE)
    without = NotAvailable("no predictions for the training part")
    lacking = replace(lacking, views={**lacking.views, "memorised": without})
    with pytest.raises(FarshiftError, match=r"knn on modadd97/xi35 has no score 'memorised': no predictions for"):
        make_figure([record(**NOISE), lacking], "noise")


def test_names_that_do_not_fit_a_column_get_the_page():
    assert make_figure([record("lstm")], "gap").get_figwidth() == 3.3
    assert make_figure([record("a-name-that-is-wider-than-its-margin")], "gap").get_figwidth() == 6.9
