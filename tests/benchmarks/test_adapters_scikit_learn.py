"""scikit-learn estimators as models: the same answers as scikit-learn gives when called by hand."""

from __future__ import annotations

import numpy as np
import pytest
from farshift.benchmarks.adapters.scikit_learn import adapt
from farshift.benchmarks.blind.training_table import TrainingTable
from farshift.benchmarks.model import Budget, Task
from farshift.core.errors import ModelError

pytest.importorskip("sklearn")
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

POINTS = Task("classification", ("x", "image"), "kind", classes=5)
NUMBERS = Task("regression", ("x", "image"), "value")
WORDS = Task("classification", ("text",), "kind", classes=3)
TEXTS = np.array(["walk left", "run left", "run right twice", "look", "walk walk run", "look left"] * 4, object)
BUDGET = Budget("quick")


def rows(weight=None, **columns) -> TrainingTable:
    count = len(next(iter(columns.values())))
    weight = np.ones(count, np.int64) if weight is None else weight
    return TrainingTable(columns | {"weight": weight}, np.arange(count, dtype=np.uint64))


def points(count: int = 60) -> TrainingTable:
    """Rows of the classes 1 and 3 of five."""
    rng = np.random.default_rng(0)
    kind = np.tile([1, 3], count // 2)
    image = rng.integers(0, 256, (count, 2, 2)).astype(np.uint8)
    return rows(x=kind + rng.standard_normal(count), image=image, kind=kind, value=kind * 1.5)


def matrix(train: TrainingTable) -> np.ndarray:
    return np.column_stack([train.columns["x"], train.columns["image"].reshape(len(train), -1)])


def fitted(estimator, task, train, seed=0):
    model = adapt(estimator, task, seed)
    model.fit(train, None, BUDGET)
    return model


def test_probabilities_lie_in_the_columns_of_the_task_s_classes():
    train = points()
    by_hand = LogisticRegression().fit(matrix(train), train.columns["kind"])
    answers = fitted(LogisticRegression(), POINTS, train).predict(train.columns)
    assert answers.prediction.tolist() == by_hand.predict(matrix(train)).tolist()
    assert np.array_equal(answers.scores[:, [1, 3]], by_hand.predict_proba(matrix(train)).astype(np.float32))
    assert answers.scores.shape == (60, 5)
    assert not answers.scores[:, [0, 2, 4]].any(), "classes never trained on"
    assert answers.answered.all()


@pytest.mark.parametrize("estimator", [Perceptron(), SVC()])
def test_an_estimator_without_probabilities_gives_classes_alone(estimator):
    answers = fitted(estimator, POINTS, points()).predict(points().columns)
    assert answers.scores is None
    assert set(answers.prediction.tolist()) <= {1, 3}


def test_a_decision_threshold_of_the_estimator_s_own_is_kept():
    train = points()
    answers = fitted(FixedThresholdClassifier(LogisticRegression(), threshold=1.0), POINTS, train).predict(
        train.columns
    )
    assert set(answers.prediction.tolist()) == {1}
    assert (answers.scores.argmax(axis=1) == 3).any()


def test_a_regressor_answers_a_regression_task_with_numbers():
    train = points()
    by_hand = LinearRegression().fit(matrix(train), train.columns["value"])
    answers = fitted(LinearRegression(), NUMBERS, train).predict(train.columns)
    assert np.array_equal(answers.prediction, by_hand.predict(matrix(train)))
    assert answers.scores is None


@pytest.mark.parametrize(
    ("estimator", "task", "complaint"),
    [
        (
            RandomForestRegressor(),
            POINTS,
            "RandomForestRegressor is a scikit-learn regressor, and this is a classification",
        ),
        (make_pipeline(StandardScaler(), SVR()), POINTS, "Pipeline is a scikit-learn regressor, and"),
        (
            GridSearchCV(SVC(), {"C": [1]}),
            NUMBERS,
            "GridSearchCV is a scikit-learn classifier, and this is a regression task",
        ),
        (KMeans(), POINTS, "KMeans is a scikit-learn clusterer"),
        (SVC(), Task("sequence", ("text",), "out"), "SVC is a scikit-learn classifier, and this is a sequence task"),
        (
            make_pipeline(TfidfVectorizer(), SVC()),
            POINTS,
            "a vectoriser reads one text input, and this task has x, image",
        ),
    ],
)
def test_an_estimator_of_the_wrong_sort_is_refused_before_it_is_trained(estimator, task, complaint):
    with pytest.raises(ModelError, match=complaint):
        adapt(estimator, task, 0)


VECTORISED = {
    "pipeline": make_pipeline(TfidfVectorizer(), LogisticRegression()),
    "nested": make_pipeline(make_pipeline(CountVectorizer(), StandardScaler(with_mean=False)), MultinomialNB()),
    "hashing": make_pipeline(HashingVectorizer(n_features=64), LogisticRegression()),
    "union": make_pipeline(
        FeatureUnion([("words", CountVectorizer()), ("letters", CountVectorizer(analyzer="char"))]), MultinomialNB()
    ),
    "search": GridSearchCV(
        make_pipeline(TfidfVectorizer(), LogisticRegression()), {"logisticregression__C": [0.1, 1]}, cv=2
    ),
}


@pytest.mark.parametrize("name", VECTORISED)
def test_a_pipeline_that_begins_with_a_vectoriser_reads_the_text_itself(name):
    kind = np.arange(len(TEXTS)) % 3
    by_hand = VECTORISED[name].fit(list(TEXTS), kind)
    answers = fitted(VECTORISED[name], WORDS, rows(text=TEXTS, kind=kind)).predict({"text": TEXTS})
    assert answers.prediction.tolist() == by_hand.predict(list(TEXTS)).tolist()
    assert np.allclose(answers.scores, by_hand.predict_proba(list(TEXTS)), atol=1e-6)


@pytest.mark.parametrize("estimator", [LogisticRegression(), make_pipeline(StandardScaler(), SVC())])
def test_text_without_a_vectoriser_is_refused(estimator):
    with pytest.raises(ModelError, match="input 'text' is text: make a vectoriser the first step of a pipeline"):
        fitted(estimator, WORDS, rows(text=TEXTS, kind=np.arange(len(TEXTS)) % 3))


WEIGHT = np.tile([1, 2, 3], 20)


def test_a_weight_is_handed_to_an_estimator_that_takes_weights():
    train = points()
    train.columns["weight"] = WEIGHT / 2
    by_hand = LogisticRegression().fit(matrix(train), train.columns["kind"], sample_weight=WEIGHT / 2)
    answers = fitted(LogisticRegression(), POINTS, train).predict(train.columns)
    assert np.array_equal(answers.scores[:, [1, 3]], by_hand.predict_proba(matrix(train)).astype(np.float32))


@pytest.mark.parametrize("features", ["numbers", "texts"])
def test_a_whole_weight_becomes_copies_for_an_estimator_that_takes_none(features):
    train = points()
    if features == "numbers":
        made, task, given = make_pipeline(StandardScaler(), KNeighborsClassifier(5)), POINTS, matrix(train)
        train.columns["weight"] = WEIGHT
    else:
        made, task, given = make_pipeline(CountVectorizer(), MultinomialNB()), WORDS, TEXTS
        train = rows(WEIGHT[: len(TEXTS)], text=TEXTS, kind=np.arange(len(TEXTS)) % 3)
    by_hand = made.fit(
        given.repeat(train.columns["weight"], axis=0), train.columns["kind"].repeat(train.columns["weight"])
    )
    expected = by_hand.predict_proba(given)
    answers = fitted(made, task, train).predict(train.columns)
    assert np.allclose(answers.scores[:, by_hand.classes_], expected, atol=1e-6)


def test_a_broken_weight_is_refused_by_an_estimator_that_takes_none():
    train = points()
    train.columns["weight"] = WEIGHT / 2
    with pytest.raises(
        ModelError, match="KNeighborsClassifier takes no sample_weight, and the weights are not whole numbers"
    ):
        fitted(KNeighborsClassifier(), POINTS, train)


def test_an_open_random_state_is_the_seed_s_and_the_user_s_own_object_is_left_alone():
    mine = RandomForestClassifier(3, max_depth=2)
    train = points()
    scores = [fitted(mine, POINTS, train, seed).predict(train.columns).scores for seed in (0, 0, 1)]
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert mine.random_state is None
    assert not hasattr(mine, "classes_")
    fixed = [fitted(RandomForestClassifier(3, random_state=5), POINTS, train, seed) for seed in (0, 1)]
    assert np.array_equal(*(one.predict(train.columns).scores for one in fixed))
