"""The reliability diagrams say what the records say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from farshift import FarshiftError
from farshift.benchmarks.plot import make_figure
from farshift.benchmarks.scoring.record import ViewScores
from pictures import line, names
from records import many, record


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


def test_the_ece_is_the_scores_own_where_it_has_one():
    item = record("lstm", probabilities=True)
    measured = ViewScores(*(replace(item.id, value=value) for value in (0.039, 0.225, 0.186)))
    above, _ = make_figure([replace(item, metrics={"ece@1": measured})], "calibration").axes
    assert "ECE: ID 0.039, OOD 0.225" in above.get_title()


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


def test_one_view_alone_is_drawn_alone():
    item = record(probabilities=True)
    item = replace(item, calibration={"ood": item.calibration["ood"]})
    above, beneath = make_figure([item], "calibration").axes
    assert [series.get_label() for series in beneath.containers] == ["ood"]
    assert "ECE: OOD 0.214" in above.get_title()


def test_a_run_without_class_probabilities_is_named():
    records = [record("lstm", probabilities=True), record("knn")]
    with pytest.raises(
        FarshiftError, match=r"^knn on scan/length: calibration requires class probabilities.*train with farshift run"
    ):
        make_figure(records, "calibration")
