"""The conformance suite: it passes models of every make, and finds each way to break the contract."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from farshift import Answers, Failed, FarshiftError, check_model, predictor
from farshift import benchmark as find_benchmark
from farshift.baselines.baseline import Baseline
from farshift.baselines.recipe import find_recipe
from farshift.benchmarks.answers import find_differences
from farshift.benchmarks.harness.conformance import CHECKS, checks
from farshift.benchmarks.model import Task
from farshift.core.errors import ModelError
from hypothesis import given
from hypothesis import strategies as st

PAIRS = Task("classification", ("a", "b"), "sum", classes=7)
TEXT = Task("sequence", ("command",), "actions")
BITS = Task("sequence", ("bits",), "sums", tokens="character", aligned=True)
VALUE = Task("regression", ("x",), "value")
NAMES = [check.__name__.replace("_", " ") for check in CHECKS]


def rows(task: Task, count: int = 64) -> dict:
    """Rows of a task, drawn at random."""
    draws = np.random.default_rng(1)
    texts = np.array(["".join(draws.choice([*"01"], 5)) for _ in range(count)], object)
    values = {"classification": draws.integers(0, 7, (3, count)), "regression": draws.random((3, count))}
    names = [*task.inputs, task.label]
    return {name: texts if task.in_text else values[task.type][at] for at, name in enumerate(names)}


def failing(model, task: Task = PAIRS, batch=None, **how) -> dict[str, str]:
    """The checks that a model fails, with what they say."""
    result = {}
    for name, check in checks(model, task, batch=rows(task) if batch is None else batch, **how):
        try:
            check()
        except ModelError as error:
            result[name] = str(error)
    return result


class Adder:
    """Adds, and gives probabilities."""

    def predict(self, batch):
        scores = np.full((len(batch["a"]), 7), 0.05)
        scores[np.arange(len(scores)), (batch["a"] + batch["b"]) % 7] = 0.7
        return scores


class Memoriser:
    """Gives back the label it was given, or 0."""

    def fit(self, train, val, budget):
        rows = train.numpy()
        self.known = dict(zip(self.keys(rows), rows["sum"].tolist(), strict=True))

    @staticmethod
    def keys(batch):
        return zip(batch["a"].tolist(), batch["b"].tolist(), strict=True)

    def predict(self, batch):
        return np.array([self.known.get(pair, 0) for pair in self.keys(batch)])


def leaves_rows_out(batch):
    kinds = [None, Failed("no answer"), 3, 4]
    return [kinds[(a + b) % 4] for a, b in zip(batch["a"], batch["b"], strict=True)]


def answers_object(batch):
    status = (batch["a"] == 0).astype(np.int8)
    return Answers((batch["a"] + batch["b"]) % 7, status)


@pytest.mark.parametrize(
    ("model", "task"),
    [
        (Adder(), PAIRS),
        (lambda seed, task: Adder(), PAIRS),
        (lambda batch: (batch["a"] + batch["b"]) % 7, PAIRS),
        (predictor(lambda *batch: batch[0]["a"]), PAIRS),
        (Memoriser(), PAIRS),
        (leaves_rows_out, PAIRS),
        (answers_object, PAIRS),
        (lambda batch: [None] * len(batch["a"]), PAIRS),
        (lambda batch: [text.upper() for text in batch["command"]], TEXT),
        (lambda batch: batch["x"] / 3, VALUE),
    ],
)
def test_an_honest_model_passes_every_check(model, task):
    check_model(model, task, batch=rows(task))
    assert failing(model, task) == {}


def test_scikit_learn_estimators_pass():
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
    from sklearn.naive_bayes import GaussianNB

    check_model(RandomForestClassifier(3, max_depth=4), PAIRS, batch=rows(PAIRS))
    check_model(lambda seed: GaussianNB(), PAIRS, batch=rows(PAIRS))
    check_model(RandomForestRegressor(3), VALUE, batch=rows(VALUE))


def test_torch_modules_pass_trained_and_to_be_trained():
    torch = pytest.importorskip("torch")

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.drop, self.out = torch.nn.Dropout(0.5), torch.nn.Linear(2, 7)

        def forward(self, a, b):
            return self.out(self.drop(torch.stack([a, b], dim=1).float()))

    class Fits(Net):
        def fit(self, train, val, budget):
            for _ in range(budget.steps):
                with torch.no_grad():
                    self.out.weight.add_(torch.randn_like(self.out.weight))

    for model in (Net(), Net, Fits(), Fits):
        check_model(model, PAIRS, batch=rows(PAIRS))


@pytest.mark.parametrize(("name", "task"), [("mlp", PAIRS), ("lstm", TEXT), ("lstm-aligned", BITS)])
def test_baselines_pass(name, task):
    pytest.importorskip("sklearn")
    check_model(lambda seed: Baseline(find_recipe(name), task, seed, "toy/toy"), task, batch=rows(task))


class WritesIntoItsInput(Adder):
    def predict(self, batch):
        answer = super().predict(batch)
        batch["a"][:] = 0
        return answer


class DropsAColumn(Adder):
    def predict(self, batch):
        answer = super().predict(batch)
        del batch["b"]
        return answer


class Counts:
    """Its answer depends on how often it was asked."""

    def __init__(self):
        self.asked = 0

    def predict(self, batch):
        self.asked += 1
        return (batch["a"] + self.asked) % 7


class Disagrees(Adder):
    def predict(self, batch):
        scores = super().predict(batch).astype(np.float32)
        return Answers.all_given((scores.argmax(axis=1) + 1) % 7, scores)


class NoPredict:
    def fit(self, train, val, budget):
        pass


class FitTakesTwo(Memoriser):
    def fit(self, train, val):
        super().fit(train, val, None)


class FitNeedsValidation(Memoriser):
    def fit(self, train, val, budget):
        super().fit(train, val, budget)
        len(val)


class FitWritesIntoTheRows(Memoriser):
    def fit(self, train, val, budget):
        super().fit(train, val, budget)
        train.numpy()["a"] += 1


UNSEEDED = itertools.count()
"""Stands for a generator that no seed governs: each draw is another."""


class TrainsByChance(Memoriser):
    def fit(self, train, val, budget):
        self.drawn = next(UNSEEDED)

    def predict(self, batch):
        return (batch["a"] + self.drawn) % 7


class SharesItsWeights(Memoriser):
    known: dict = {}  # noqa: RUF012

    def fit(self, train, val, budget):
        rows = train.numpy()
        SharesItsWeights.known.update(zip(self.keys(rows), rows["sum"].tolist(), strict=True))


ONE = Memoriser()

BROKEN = [
    ("it can be made", NoPredict, "has no predict"),
    (
        "every row gets an answer of the right kind",
        lambda batch: batch["a"] + 7,
        r"class \d+ for row .*not one of 0..6",
    ),
    ("a batch may be one row", lambda batch: np.squeeze(batch["a"] % 7), r"returned \w+ instead of 1 prediction"),
    ("asked again it answers alike", Counts(), "predicted again: 64 of 64 rows, the first is row 0"),
    (
        "batches do not matter",
        lambda batch: (batch["a"] > batch["a"].mean()).astype(int),
        r"predictions in batches of 1 differ from those in one batch of 64: \d+ of 64 rows",
    ),
    (
        "the order of rows does not matter",
        lambda batch: np.arange(len(batch["a"])) % 7 % np.maximum(batch["a"], 1),
        r"predictions differ when the rows are in another order: \d+ of 64",
    ),
    ("predict leaves its input alone", WritesIntoItsInput(), r"predict changed the columns .*\(a\): work on a copy"),
    ("predict leaves its input alone", DropsAColumn(), r"predict changed the columns that it received \(b\)"),
    ("probabilities agree with predictions", Disagrees(), "not the most probable one by the scores: 64 of 64"),
    ("fit leaves the training rows alone", FitWritesIntoTheRows, r"fit changed the columns that it received \(a\)"),
    ("the same seed gives the same model", TrainsByChance, "when it is made again with seed 0: 64 of 64 rows"),
    ("one model does not change another", SharesItsWeights, "differ after another model was made: they share"),
    ("one model does not change another", lambda seed: ONE, "the factory returned the same object twice"),
]
"""A check, a model that fails it, and what is said of it."""

ALONE = (WritesIntoItsInput, DropsAColumn, Disagrees, FitWritesIntoTheRows, SharesItsWeights)
"""Models that break the contract in one way, for which no other check may blame them."""


def test_there_is_a_broken_model_for_every_check():
    assert list(dict.fromkeys(name for name, _, _ in BROKEN)) == NAMES


@pytest.mark.parametrize(("name", "model", "complaint"), BROKEN)
def test_a_model_broken_in_one_way_fails_that_check(name, model, complaint):
    SharesItsWeights.known.clear()
    result = failing(model)
    assert re.search(complaint, result[name])
    if model in ALONE or type(model) in ALONE:
        assert list(result) == [name]
    with pytest.raises(ModelError, match=complaint):
        check_model(model, PAIRS, batch=rows(PAIRS))


@pytest.mark.parametrize(
    ("model", "complaint"),
    [
        (lambda batch: Adder().predict(batch) * 3, "returned scores that are not probabilities"),
        (lambda batch: batch["a"][:-1], "63 predictions for 64 rows"),
        (lambda batch: batch["a"] / 1, "dtype float64, expected whole numbers"),
        (lambda batch: 1 / 0, r"raised ZeroDivisionError: division by zero \(test_conformance.py:\d+\)"),
        (FitTakesTwo, r"fit\(train, None, budget\) raised TypeError"),
        (FitNeedsValidation, r"fit\(train, None, budget\) raised TypeError: object of type 'NoneType' has no len"),
        (7, "the model is of type int"),
    ],
)
def test_a_problem_is_named_once_however_many_checks_meet_it(model, complaint):
    with pytest.raises(ModelError, match=complaint) as raised:
        check_model(model, PAIRS, batch=rows(PAIRS))
    heading, *problems = str(raised.value).splitlines()
    assert heading.endswith("does not fulfil the contract of a model:")
    assert len(problems) == 1
    assert problems[0].startswith("- ")


def test_every_problem_is_listed():
    class Worst(WritesIntoItsInput):
        def predict(self, batch):
            return super().predict(batch).argmax(axis=1) + 7

    with pytest.raises(ModelError) as raised:
        check_model(Worst(), PAIRS, batch=rows(PAIRS))
    problems = str(raised.value).splitlines()[1:]
    assert len(problems) == 2
    assert "not one of 0..6" in problems[0]
    assert "predict changed the columns" in problems[1]


def test_nothing_is_made_or_trained_before_a_check_is_called():
    built = []
    pairs = checks(lambda seed: built.append(seed) or Adder(), PAIRS, seed=5, batch=rows(PAIRS))
    assert [name for name, _ in pairs] == NAMES
    assert not built
    pairs[0][1]()
    assert built == [5]


def test_a_model_is_asked_for_the_user_s_own_rows_and_never_shown_their_label():
    seen = {}

    class Spy(Memoriser):
        def fit(self, train, val, budget):
            seen["sum"] = train.numpy()["sum"].tolist()
            super().fit(train, val, budget)

        def predict(self, batch):
            seen["columns"] = sorted(batch)
            return super().predict(batch)

    batch = {"a": np.arange(5), "b": np.zeros(5, int), "sum": np.arange(5)[::-1].copy(), "row_id": np.arange(5)}
    check_model(Spy, PAIRS, batch=batch)
    # The last fit was another model's, with other labels.
    assert seen == {"sum": [0, 4, 3, 2, 1], "columns": ["a", "b"]}


@pytest.mark.parametrize(
    ("model", "batch", "complaint"),
    [
        (Adder, {"a": np.arange(5)}, "has no rows of b"),
        (Adder, {"a": np.arange(0), "b": np.arange(0)}, "has no rows of a, b"),
        (Adder, None, "give a batch of its inputs too"),
        (Memoriser, {"a": np.arange(5), "b": np.arange(5)}, "has no label 'sum' to train on"),
    ],
)
def test_rows_that_a_check_lacks_are_named(model, batch, complaint):
    with pytest.raises(FarshiftError, match=complaint):
        check_model(model, PAIRS, batch=batch)


def test_a_benchmark_gives_the_rows_that_its_models_are_trained_on():
    inputs, labels = set(), set()

    class Images:
        def fit(self, train, val, budget):
            labels.update(train.numpy()["digit"].tolist())

        def predict(self, batch):
            inputs.add((batch["image"].dtype.name, batch["image"].shape[1:]))
            return [0] * len(batch["image"])

    check_model(Images, benchmark := find_benchmark("rotated_mnist/angle_75"))
    assert inputs == {("uint8", benchmark.load("train").numpy(["image"])["image"].shape[1:])}
    assert len(labels) > 5


@given(st.integers(2, 5), st.integers(1, 20), st.integers(0, 10**6))
def test_answers_differ_where_status_prediction_or_probability_does_and_nowhere_else(classes, rows, draw):
    rng = np.random.default_rng(draw)
    task = Task("classification", ("a",), "b", classes=classes)
    scores = rng.dirichlet(np.ones(classes), rows).astype(np.float32)
    left = Answers(scores.argmax(axis=1), rng.integers(0, 3, rows).astype(np.int8), scores)
    assert not find_differences(left, left, task).any()
    rounded = Answers(left.prediction, left.status, scores + np.float32(1e-5))
    assert not find_differences(left, rounded, task).any()
    row = int(rng.integers(rows))
    status = left.status.copy()
    status[row] = (status[row] + 1) % 3
    assert np.flatnonzero(find_differences(left, Answers(left.prediction, status, scores), task)).tolist() == [row]
    moved = scores.copy()
    moved[row] = np.roll(moved[row], 1)
    expected = left.status[row] == 0 and abs(moved[row] - scores[row]).max() > 1e-3
    result = find_differences(left, Answers(moved.argmax(axis=1), left.status, moved), task)
    assert np.flatnonzero(result).tolist() == ([row] if expected else [])


def test_a_tie_of_two_classes_is_no_difference():
    task = Task("classification", ("a",), "b", classes=3)
    left = Answers.all_given(np.array([0, 0]), np.array([[0.4, 0.4, 0.2], [0.5, 0.3, 0.2]], np.float32))
    right = Answers.all_given(np.array([1, 1]), left.scores)
    assert find_differences(left, right, task).tolist() == [False, True]
    bare = Answers.all_given(left.prediction), Answers.all_given(right.prediction)
    assert find_differences(*bare, task).tolist() == [True, True]
