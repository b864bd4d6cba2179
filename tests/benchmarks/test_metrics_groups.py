"""Metrics over groups in a benchmark: what they read of the rows, how sure they are, and what a benchmark may say."""

from __future__ import annotations

import farshift as fs
import numpy as np
import pytest
from farshift import Answers
from farshift.benchmarks.benchmark import find_benchmark
from farshift.benchmarks.metrics import find_metric
from farshift.benchmarks.model import Task
from farshift.benchmarks.scoring.answered_rows import AnsweredRows
from farshift.benchmarks.scoring.breakdown import compute_group_quantiles
from farshift.benchmarks.scoring.score import score_predictions
from farshift.benchmarks.statistics.interval import estimate_mean
from farshift.benchmarks.statistics.sample import make_half_replicates, make_replicates
from farshift.core.errors import BadDefinition
from hypothesis import given
from hypothesis import strategies as st
from own import changed
from scipy.stats.mstats import mquantiles

ON = "vowel/speakers"
TASK = Task("classification", ("x",), "y", 2)
WORST = {"name": "worst_group_accuracy", "version": 1, "options": {"by": ["sex"]}}
ACCURACY = {"name": "accuracy", "version": 1}


class Rough:
    """Wrong on a share of the rows that depends on an input, and on the seed."""

    def __init__(self, seed):
        self.seed = seed

    def fit(self, train, val, budget):
        rows = train.numpy()
        self.classes = int(rows["vowel"].max()) + 1

    def predict(self, batch):
        first = np.asarray(batch["features"])[:, 0]
        return (np.abs(first * 1000).astype(int) + self.seed) % self.classes


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return fs.evaluate(Rough, on=ON, seeds=2, budget="quick", out=tmp_path_factory.mktemp("runs") / "rough")


def scored(run, metrics):
    bench = changed(ON, {"metrics": metrics})
    return bench, score_predictions(bench, run.predictions(), run)


def test_a_benchmark_without_options_is_written_and_identified_as_ever():
    pin = find_benchmark(ON).definition.metrics[0].model_dump()
    assert pin == {"name": pin["name"], "version": pin["version"]}
    assert changed(ON, {"metrics": [ACCURACY]}).identity("full") != changed(ON, {"metrics": [WORST]}).identity("full")


def test_the_worst_group_is_of_a_field_that_the_split_does_not_group_by(run):
    bench, result = scored(run, [WORST, ACCURACY])
    part, truth = bench.view("ood")
    sex = part.numpy(["sex"])["sex"]
    expected = []
    for seed in range(2):
        right = Rough(seed)
        right.classes = bench.task.classes
        hits = right.predict(part.numpy(["features"])) == truth
        expected.append(min(hits[sex == item].mean() for item in set(sex.tolist())))
    assert result.ood.value == pytest.approx(np.mean(expected), abs=1e-6)
    assert result.ood.low < result.ood.value < result.ood.high
    assert result.metric == "worst_group_accuracy@1"
    again = score_predictions(bench, run.predictions(), run)
    assert result.json() == again.json()


@pytest.mark.parametrize(
    ("pin", "complaint"),
    [
        (WORST | {"options": {}}, "options of metric worst_group_accuracy: .*or in both"),
        (WORST | {"options": {"by": ["sex"], "off": ["a"]}}, "off: no such key"),
        (ACCURACY | {"options": {"by": ["sex"]}}, "metric accuracy accepts no options, got by"),
        (WORST | {"options": {"by": ["sexes"]}}, "metrics: no field named 'sexes': did you mean sex"),
    ],
)
def test_what_a_metric_cannot_take_is_refused_by_name(pin, complaint):
    bench = changed(ON, {"metrics": [pin]})
    with pytest.raises(BadDefinition, match=complaint):
        bench.check()


def rows_of(groups: np.ndarray, right: np.ndarray, clusters: np.ndarray | None = None) -> AnsweredRows:
    ids = np.arange(len(groups), dtype=np.uint64) * 977
    given = np.asarray(right, np.int64)
    return AnsweredRows(TASK, ids, np.ones(len(ids), np.int64), [Answers.all_given(given)], clusters, {"g": groups})


def test_of_a_clear_worst_group_the_interval_is_that_of_its_own_rows():
    groups = np.repeat([0, 1, 2], 400)
    right = np.arange(1200) % 400 < np.array([200, 320, 380])[groups]
    worst = estimate_mean(rows_of(groups, right).by(find_metric("worst_group_accuracy", options={"by": ["g"]})))
    alone = estimate_mean(rows_of(groups[:400], right[:400]).by(find_metric("accuracy")))
    assert worst.value == 0.5
    assert worst.row_se == pytest.approx(alone.row_se, rel=0.35), "32 groups of rows tell a standard error to 13 %"
    assert worst.clustering.treated == "fixed"


def test_rows_in_no_group_do_not_count_and_no_group_at_all_has_no_value():
    groups = np.array(["a"] * 40 + ["Other"] * 60, object)
    right = np.arange(100) % 2
    of = find_metric("worst_group_accuracy", options={"by": ["g"], "without": ["Other"]})
    result = estimate_mean(rows_of(groups, right).by(of))
    assert (result.value, result.rows) == (0.5, 40)
    none = estimate_mean(rows_of(groups[40:], right[40:]).by(of))
    assert not none.defined
    assert "not defined" in none.to_dict()["n/a"]


def test_a_worst_group_that_is_one_cluster_is_not_taken_as_drawn_from_more():
    groups = np.repeat(np.arange(8), 50)
    right = np.arange(400) % 50 < np.array([25, 30, 35, 40, 45, 45, 40, 35])[groups]
    of = find_metric("worst_group_accuracy", options={"by": ["g"]})
    result = estimate_mean(rows_of(groups, right, groups).by(of))
    assert result.clustering.treated == "fixed"
    assert result.row_se < 0.15, "whole regions left out would move it by far more"


def test_users_are_drawn_whole():
    users = np.arange(2000) % 100
    right = np.arange(2000) // 100 < 20 * (0.5 + 0.4 * (users % 10) / 10)
    result = estimate_mean(rows_of(users, right).by(find_metric("group_percentile_accuracy", options={"by": ["g"]})))
    assert result.clustering.count == 100
    assert result.clustering.treated == "random"
    assert result.defined


def test_of_a_mean_halves_say_what_groups_left_out_say():
    sizes = np.full(8, 5)
    sums = [np.array([float(number**2 % 7), 5.0]) for number in range(8)]
    both = [
        how([sums], lambda a, b: a + b, lambda s: s[0] / s[1], sizes, (0.0, 10.0))
        for how in (make_replicates, make_half_replicates)
    ]
    assert both[1].per_seed == pytest.approx(both[0].per_seed)
    assert both[1].without == pytest.approx(both[0].without)
    assert both[1].spread().variance == pytest.approx(both[0].spread().variance)


def test_a_metric_that_only_the_shifted_rows_have_is_told_with_its_ood_value(run):
    """The mean corruption error of clean ID rows has no value, and that of the OOD rows is told all the same."""
    speakers = sorted(set(find_benchmark(ON).view("ood")[0].row_metadata["group"].tolist()))
    reference = dict.fromkeys(speakers, 0.5)
    corrupted = {"name": "mean_corruption_error", "version": 1, "options": {"corruption": "group", "clean": "none"}}
    _, result = scored(run, [ACCURACY, corrupted])
    signature = "mean_corruption_error@1"
    assert result.metrics[signature].ood.value == pytest.approx(1 - result.ood.value, abs=0.02), (
        "the groups are alike large"
    )
    bench = changed(
        ON, {"metrics": [ACCURACY, corrupted | {"options": corrupted["options"] | {"reference": reference}}]}
    )
    only = score_predictions(bench, run.predictions(), run)
    assert not hasattr(only.metrics[signature].id, "value")
    assert "mean_corruption_error: id n/a" in str(only)
    assert f"ood {only.metrics[signature].ood.value:.3f}" in str(only)


def test_shape_bias_is_the_share_of_shape_decisions_among_shape_and_texture_decisions():
    task = Task("classification", ("image",), "shape", 4, names=("bear", "cat", "dog", "oven"))
    texture = np.array(["cat", "cat", "cat", "dog", "bear", "none", "cat"], object)
    truth, given = np.array([0, 0, 0, 0, 0, 0, 1]), np.array([0, 1, 3, 0, 0, 0, 1])
    measure = find_metric("shape_bias", options={"against": "texture"})
    # Two shapes and a texture decide; a third class, an agreeing texture and none do not count.
    assert measure.value(Answers.all_given(given), truth, task, {"texture": texture}) == pytest.approx(2 / 3)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=50), st.floats(0, 1))
def test_quantiles_are_scipys_of_type_seven_and_turn_with_the_scale(values, share):
    (result,) = compute_group_quantiles(values, (share,), "higher").values()
    assert result == pytest.approx(mquantiles(values, [share], alphap=1, betap=1)[0], abs=2e-6)
    (turned,) = compute_group_quantiles(-np.array(values), (share,), "lower").values()
    assert turned == pytest.approx(-result, abs=2e-6)


def test_the_worst_decile_of_a_loss_is_its_high_end():
    assert compute_group_quantiles(np.arange(11.0), (0.1, 0.5), "lower") == {"0.1": 9.0, "0.5": 5.0}
