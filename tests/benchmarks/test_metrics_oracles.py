"""Metrics of classes, probabilities and numbers: held against scikit-learn, SciPy and brute force, and what is exact."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import reduce
from itertools import permutations
from math import log

import numpy as np
import pytest
from farshift import Answers, FarshiftError
from farshift.benchmarks.answers import ABSTAINED
from farshift.benchmarks.metrics import Metric, find_metric
from farshift.benchmarks.model import Task
from farshift.benchmarks.scoring.answered_rows import AnsweredRows
from farshift.benchmarks.statistics.interval import estimate_mean
from hypothesis import given
from hypothesis import strategies as st
from metric_cases import OPTIONS, Case, classified, measured
from scipy import stats
from sklearn import metrics as sklearn

Mask = np.ndarray


def find(name: str) -> Metric:
    return find_metric(name, options=OPTIONS.get(name))


def of_classes(truth, prediction, scores=None, classes: int = 2, **columns) -> Case:
    answers = Answers.all_given(np.array(prediction), None if scores is None else np.asarray(scores, np.float32))
    return Case(answers, np.array(truth), Task("classification", ("x",), "y", classes), columns)


def of_numbers(prediction, truth, **columns) -> Case:
    answers = Answers.all_given(np.array(prediction, float))
    return Case(answers, np.array(truth), Task("regression", ("x",), "y"), columns)


def macro_f1(case: Case) -> float:
    """A lost row is a class of its own that is not a label."""
    given = case.settled.prediction
    occurring = np.setdiff1d(np.union1d(case.truth, given), [-1])
    return sklearn.f1_score(case.truth, given, labels=occurring, average="macro", zero_division=0)


def area_over_classes(case: Case, area: Callable[[Mask, np.ndarray], float], needs_others: bool) -> float:
    """The mean of an area over the ranked classes, from the scores of each in which a lost row loses all it can."""
    result = []
    for item in [1] if case.task.classes == 2 else range(case.task.classes):
        own = case.truth == item
        scores = np.where(case.answers.answered, case.answers.scores[:, item], np.where(own, -1, 2))
        if own.any() and not (needs_others and own.all()):
            result.append(area(own, scores))
    return np.mean(result) if result else np.nan


def precision_at_each_row(own: Mask, scores: np.ndarray) -> float:
    """The mean over the rows of the class of the precision at their score: nothing for rows never retrieved."""
    return sum(own[scores >= score].mean() if score >= 0 else 0.0 for score in scores[own]) / own.sum()


def brier(case: Case) -> float:
    rows = zip(case.answers.scores, case.truth, case.answers.answered, strict=True)
    return np.mean([((row - np.eye(len(row))[true]) ** 2).sum() if answered else 2.0 for row, true, answered in rows])


def guo(case: Case) -> float:
    """Eq. 3 of Guo et al. by its words, in fractions; lost rows are a bin of their own."""
    bins: dict[int, Fraction] = {}
    for row, true, answered in zip(case.answers.scores, case.truth, case.answers.answered, strict=True):
        confidence = Fraction(float(row.max())) if answered else Fraction(1)
        item = next(b for b in range(1, 16) if Fraction(b - 1, 15) < confidence <= Fraction(b, 15)) if answered else 0
        right = answered and row.argmax() == true
        bins[item] = bins.get(item, Fraction(0)) + int(right) - confidence
    return float(sum(map(abs, bins.values())) / len(case))


def correlation(case: Case, of: Callable[..., tuple[float, float]]) -> float:
    constant = np.ptp(case.answers.prediction) == 0 or np.ptp(case.truth) == 0
    return np.nan if constant else of(case.answers.prediction, case.truth)[0]


def regret_groups(case: Case) -> list[Mask]:
    """The rows of each group of both regrets' options."""
    place, item, two = (case.columns[name] for name in ("place", "one", "two"))
    masks = [(item >= 0.5) & (place == name) for name in ("Asia", "Europe", "Other")]
    masks += [(two >= 0.5) & (place == name) for name in ("Asia", "Europe")]
    return [mask for mask in masks if mask.any()]


def regret(case: Case) -> float:
    """Against every constant tried on every group."""
    given, truth = case.settled.prediction, case.truth
    regrets = [
        max(np.mean(given[mask] != truth[mask]) - np.mean(truth[mask] != item) for item in range(case.task.classes))
        for mask in regret_groups(case)
    ]
    return max(regrets, default=np.nan)


def squared_regret(case: Case) -> float:
    given, truth = case.answers.prediction, case.truth
    regrets = [np.mean((given[mask] - truth[mask]) ** 2) - truth[mask].var() for mask in regret_groups(case)]
    return max(regrets, default=np.nan)


def largest_difference(case: Case, mask: Mask) -> float:
    """Of the rates of class 1 over every ordered pair of groups that have rows."""
    places, selected = case.columns["place"][mask].astype(str), case.answers.prediction[mask] == 1
    rates = [np.mean(selected[places == place]) for place in np.unique(places)]
    return max((left - right for left, right in permutations(rates, 2)), default=np.nan)


def flip_rate(case: Case) -> float:
    given_to: dict[str, list[int]] = {}
    for person, prediction in zip(case.columns["place"], case.settled.prediction.tolist(), strict=True):
        given_to.setdefault(str(person), []).append(prediction)
    flipped = [len(set(given)) > 1 or -1 in given for given in given_to.values() if len(given) > 1]
    return np.mean(flipped) if flipped else np.nan


ORACLES: dict[str, tuple[st.SearchStrategy[Case], Callable[[Case], float]]] = {
    "accuracy": (classified(), lambda case: sklearn.accuracy_score(case.truth, case.settled.prediction)),
    "balanced_accuracy": (classified(), lambda c: sklearn.balanced_accuracy_score(c.truth, c.settled.prediction)),
    "macro_f1": (classified(), macro_f1),
    "auroc": (classified(), lambda case: area_over_classes(case, sklearn.roc_auc_score, True)),
    "average_precision": (classified(), lambda case: area_over_classes(case, precision_at_each_row, False)),
    "nll": (classified(), lambda c: sklearn.log_loss(c.truth, c.settled.scores, labels=np.arange(c.task.classes))),
    "brier": (classified(), brier),
    "ece": (classified(), guo),
    "rmse": (measured(losses=False), lambda c: sklearn.root_mean_squared_error(c.truth, c.answers.prediction)),
    "pearson": (measured(losses=False), lambda case: correlation(case, stats.pearsonr)),
    "spearman": (measured(losses=False), lambda case: correlation(case, stats.spearmanr)),
    "worst_group_regret": (classified(), regret),
    "worst_group_squared_regret": (measured(losses=False), squared_regret),
    "demographic_parity_difference": (
        classified(losses=False),
        lambda case: largest_difference(case, case.columns["place"] != "Other"),
    ),
    "equalised_odds_difference": (
        classified(losses=False),
        lambda case: np.fmax(*(largest_difference(case, (case.truth == 1) == y) for y in (False, True))),
    ),
    "counterfactual_flip_rate": (classified(), flip_rate),
}


@pytest.mark.filterwarnings("ignore:y_pred contains classes not in y_true", "ignore:A single label was found")
@pytest.mark.parametrize("name", ORACLES)
@given(data=st.data())
def test_a_metric_is_its_oracle(name, data):
    strategy, oracle = ORACLES[name]
    case = data.draw(strategy)
    # scikit-learn takes certainty for one minus epsilon.
    near = 1e-6 if name == "nll" else 1e-12
    assert case.value(find(name)) == pytest.approx(oracle(case), rel=near, abs=near, nan_ok=True)


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_many_rows_of_many_classes_are_scikit_learns(classes):
    rng = np.random.default_rng(classes)
    truth = rng.integers(0, classes, 4000)
    weights = rng.random((4000, classes)) + (truth[:, None] == np.arange(classes))
    scores = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    case = of_classes(truth, scores.argmax(axis=1), scores, classes)
    for name, oracle, options in (
        ("auroc", sklearn.roc_auc_score, {"multi_class": "ovr"}),
        ("average_precision", sklearn.average_precision_score, {}),
    ):
        # scikit-learn holds the probabilities of many classes to a sum of one in their own precision.
        exact = scores.astype(np.float64) / scores.sum(axis=1, keepdims=True, dtype=np.float64)
        expected = oracle(truth, scores[:, 1]) if classes == 2 else oracle(truth, exact, average="macro", **options)
        assert case.value(find(name)) == pytest.approx(expected, abs=1e-6)


def test_a_row_left_open_costs_recall_alone():
    left_open = of_classes([0, 0, 1, 1], [0, 0, 1, 0], classes=3)
    left_open = replace(left_open, answers=replace(left_open.answers, status=np.array([0, 0, 0, ABSTAINED], np.int8)))
    assert left_open.value(find("macro_f1")) == pytest.approx((1 + 2 / 3) / 2)
    assert left_open.losing(3).value(find("macro_f1")) == left_open.value(find("macro_f1"))


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "macro_f1"])
def test_classes_may_be_held_in_few_bits(name):
    case = of_classes([0, 1, 2, 2, 1], [0, 1, 1, 2, 0], classes=3).losing(4)
    assert replace(case, truth=case.truth.astype(np.uint8)).value(find(name)) == case.value(find(name))


@pytest.mark.parametrize("name", ["auroc", "average_precision"])
@given(classified(classes=2), st.data())
def test_a_negative_zero_is_a_zero(name, case, data):
    scores = case.answers.scores.copy()
    flipped = np.array(data.draw(st.lists(st.booleans(), min_size=len(case), max_size=len(case))))
    scores[(scores == 0) & flipped[:, None]] = -0.0
    other = replace(case, answers=replace(case.answers, scores=scores))
    assert other.value(find(name)) == pytest.approx(case.value(find(name)), rel=1e-12, nan_ok=True)


@pytest.mark.parametrize("name", ["auroc", "average_precision", "spearman"])
@given(data=st.data())
def test_merging_shards_leaves_no_trace_in_the_bits(name, data):
    case, measure = data.draw(ORACLES[name][0]), find(name)
    first = np.array(data.draw(st.lists(st.booleans(), min_size=len(case), max_size=len(case))))
    merged = measure.compute(measure.merge(case[~first].state(measure), case[first].state(measure)))
    assert np.array_equal(merged, case.value(measure), equal_nan=True)


WORST_NLL = 23 * log(2)
"""Minus the logarithm of float32's epsilon."""


@pytest.mark.parametrize(("name", "worst"), [("nll", WORST_NLL), ("brier", 2), ("ece", 1)])
@pytest.mark.parametrize("sure", [1.0, 1.0009])
def test_certainty_costs_nothing_where_it_is_right_and_a_bounded_amount_where_it_is_wrong(name, worst, sure):
    """Also of probabilities that sum to a little more than one."""
    for true, value in ((0, 0.0), (1, worst)):
        case = of_classes([true], [0], [[sure, 0.0]])
        assert case.value(find(name)) == pytest.approx(value, abs=1e-6)
        assert 0 <= case.value(find(name)) <= worst + 1e-9


@given(st.lists(st.tuples(st.integers(8, 15), st.integers(-2, 2), st.booleans()), min_size=1, max_size=30))
def test_a_confidence_at_the_edge_of_a_bin_is_placed_by_its_exact_value(rows):
    """Float32's nearest values to the edges k/15, and their neighbours."""
    near = np.array([edge / 15 for edge, _, _ in rows], np.float32)
    steps = np.array([step for _, step, _ in rows])
    for _ in range(2):
        near = np.where(steps > 0, np.nextafter(near, np.float32(1)), near)
        near = np.where(steps < 0, np.nextafter(near, np.float32(0)), near)
        steps -= np.sign(steps)
    case = of_classes([right for _, _, right in rows], np.ones(len(rows), int), np.stack([1 - near, near], axis=1))
    assert case.value(find("ece")) == pytest.approx(guo(case), rel=1e-12, abs=1e-15)


def draw_far(seed: int, rows: int, low: int) -> tuple[np.ndarray, np.ndarray]:
    """Predictions and truth of which a difference of moments at 1e9 leaves nothing."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 1 << 20, rows) / (1 << 10)
    return truth + rng.integers(low, 1 << 20 if low == 0 else -low, rows) / (1 << 10), truth


@pytest.mark.parametrize("offset", [0.0, 1e6, -1e9])
def test_moments_do_not_cancel_far_from_zero(offset):
    for measure, low in (
        (find("pearson"), 0),
        (find_metric("worst_group_squared_regret", options={"by": ["g"]}), -(1 << 8)),
    ):
        prediction, truth = draw_far(7, 5000, low)
        groups = np.array(["a", "b"], object)[np.arange(5000) % 2]
        near, far = (of_numbers(prediction + at, truth + at, g=groups) for at in (0.0, offset))
        states = [far[shard].state(measure) for shard in np.array_split(np.arange(5000), 13)]
        assert measure.compute(reduce(measure.merge, states)) == pytest.approx(near.value(measure), rel=1e-10)


@given(st.floats(-1e6, 1e6), st.lists(st.integers(0, 3), min_size=2, max_size=40))
def test_a_constant_has_no_correlation_however_it_was_sharded(value, shard_of):
    shard_of, pearson = np.array(shard_of), find("pearson")
    case = of_numbers(np.full(len(shard_of), value), np.arange(len(shard_of)))
    states = [case[shard_of == shard].state(pearson) for shard in range(4)]
    assert np.isnan(pearson.compute(reduce(pearson.merge, states)))


def test_rounding_never_leads_past_a_whole_correlation():
    for seed in range(100):
        truth = np.random.default_rng(seed).random(5)
        assert (
            -1
            <= of_numbers(-truth, truth).value(find("pearson"))
            < of_numbers(truth, truth).value(find("pearson"))
            <= 1
        )


@pytest.mark.parametrize("name", ["rmse", "pearson", "spearman", "worst_group_squared_regret"])
@given(measured())
def test_a_lost_number_leaves_no_value(name, case):
    row = len(case) - 1
    if name == "worst_group_squared_regret":
        row = next((int(np.flatnonzero(mask)[0]) for mask in regret_groups(case)), None)
    assert row is None or np.isnan(case.losing(row).value(find(name)))


def test_whole_numbers_may_be_the_truth():
    case = of_numbers([10.0, 190.0, 255.0], np.array([0, 200, 255], np.uint8))
    assert case.value(find("rmse")) == pytest.approx(np.sqrt(200 / 3))
    assert case.value(find("pearson")) == pytest.approx(stats.pearsonr(case.answers.prediction, [0, 200, 255])[0])


def test_numbers_too_large_to_square_are_infinitely_wrong_and_have_no_correlation():
    case = of_numbers([1e200, 2e200, 0.0], [1.0, 2.0, 3.0])
    assert case.value(find("rmse")) == np.inf
    assert np.isnan(case.value(find("pearson")))


def rows_of(case: Case) -> AnsweredRows:
    ids = np.arange(len(case), dtype=np.uint64) * 977
    return AnsweredRows(case.task, ids, case.truth, [case.answers], None, case.columns)


def test_of_a_clear_worst_group_the_interval_of_its_regret_is_that_of_its_rows():
    """Where the commonest class is clear, regret is a mean of rows: wrong, less other than the commonest."""
    at = np.arange(1200) % 400
    truth = (at % 10 >= 7).astype(np.int64)
    given = np.where(at % 8 < np.repeat([5, 2, 1], 400), 1 - truth, truth)
    classes = of_classes(truth, given, g=np.repeat(["a", "b", "c"], 400).astype(object))
    rng = np.random.default_rng(5)
    true = rng.normal(size=1200)
    noisy = true + rng.normal(size=1200) * np.repeat([1.5, 0.5], 600)
    numbers = of_numbers(noisy, true, g=np.repeat(["a", "b"], 600).astype(object))
    for name, case, excess in (
        ("worst_group_regret", classes, ((given != truth).astype(float) - truth)[:400]),
        ("worst_group_squared_regret", numbers, (noisy - true)[:600] ** 2 - (true[:600] - true[:600].mean()) ** 2),
    ):
        result = estimate_mean(rows_of(case).by(find_metric(name, options={"by": ["g"]})))
        assert result.value == pytest.approx(excess.mean())
        assert result.low < result.value < result.high
        # 32 groups of rows tell a standard error to 13 %.
        assert result.row_se == pytest.approx(excess.std() / np.sqrt(len(excess)), rel=0.35)


@pytest.mark.parametrize("positive", [0, 1])
def test_two_groups_by_hand(positive):
    """Ten women and ten men: women are selected at .3 (of four positives two), men at .6 (of five positives five)."""
    truth, given = [1] * 4 + [0] * 6 + [1] * 5 + [0] * 5, [1, 1, 0, 0, 1] + [0] * 5 + [1] * 6 + [0] * 4
    case = of_classes(truth, given, place=np.repeat(["women", "men"], 10).astype(object))
    names = ("demographic_parity_difference", "equalised_odds_difference")
    options = {"by": ["place"], "positive": positive}
    assert [case.value(find_metric(name, options=options)) for name in names] == pytest.approx([0.6 - 0.3, 1.0 - 0.5])
    with pytest.raises(FarshiftError, match="positive = 2, and the task has the classes 0 to 1"):
        case.value(find_metric(names[0], options=options | {"positive": 2}))


@pytest.mark.parametrize("name", ["demographic_parity_difference", "equalised_odds_difference"])
@given(classified())
def test_lost_rows_have_the_largest_difference_that_any_answer_to_them_gives(name, case):
    case = case[np.setdiff1d(np.arange(len(case)), np.flatnonzero(case.settled.prediction < 0)[4:])]
    lost = np.flatnonzero(case.settled.prediction < 0)
    values = []
    for code in range(1 << len(lost)):
        given = case.settled.prediction.copy()
        given[lost] = [code >> at & 1 for at in range(len(lost))]
        values.append(Case(Answers.all_given(given), case.truth, case.task, case.columns).value(find(name)))
    assert case.value(find(name)) == pytest.approx(max(values), nan_ok=True)
