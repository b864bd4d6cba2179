"""scikit-learn estimators as models: the same answers as scikit-learn gives when called by hand."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import numpy as np
import pytest
from farshift.benchmarks.adapters.scikit_learn import adapt
from farshift.benchmarks.model import Budget, Task
from farshift.benchmarks.model_inputs.rows import ModelRows
from farshift.core.errors import MissingExtra, ModelError

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor, VotingClassifier
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

pd = pytest.importorskip("pandas")

POINTS = Task("classification", ("x", "image"), "kind", classes=5)
NUMBERS = Task("regression", ("x", "image"), "value")
WORDS = Task("classification", ("text",), "kind", classes=3)
TEXTS = np.array(["walk left", "run left", "run right twice", "look", "walk walk run", "look left"] * 4, object)
BUDGET = Budget("quick")


def rows(weight=None, **columns) -> ModelRows:
    count = len(next(iter(columns.values())))
    weight = np.ones(count, np.int64) if weight is None else weight
    return ModelRows(columns | {"weight": weight}, np.arange(count, dtype=np.uint64))


def points(count: int = 60) -> ModelRows:
    """Rows of the classes 1 and 3 of five."""
    rng = np.random.default_rng(0)
    kind = np.tile([1, 3], count // 2)
    image = rng.integers(0, 256, (count, 2, 2)).astype(np.uint8)
    return rows(x=kind + rng.standard_normal(count), image=image, kind=kind, value=kind * 1.5)


def matrix(train: ModelRows) -> np.ndarray:
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
        (RandomForestRegressor(), POINTS, "RandomForestRegressor is a scikit-learn regressor, but this is a class"),
        (make_pipeline(StandardScaler(), SVR()), POINTS, "Pipeline is a scikit-learn regressor, but"),
        (GridSearchCV(SVC(), {"C": [1]}), NUMBERS, "classifier, but this is a regression task"),
        (KMeans(), POINTS, "KMeans is a scikit-learn clusterer"),
        (SVC(), Task("sequence", ("text",), "out"), "SVC is a scikit-learn classifier, but this is a sequence task"),
        (make_pipeline(TfidfVectorizer(), SVC()), POINTS, "a vectoriser reads one text input, .* has x, image"),
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


PEOPLE = Task("classification", ("age", "job", "shoe"), "kind", classes=2)
WEIGHT = np.tile([1, 2, 3], 20)


def people(count: int = 60) -> ModelRows:
    rng = np.random.default_rng(0)
    job = np.array(["nurse", "cook", "clerk"], object)[rng.integers(0, 3, count)]
    kind = ((job == "cook") ^ (rng.random(count) < 0.1)).astype(np.int64)
    shoe = rng.standard_normal((count, 2)).astype(np.float32)
    return rows(age=rng.integers(20, 60, count), job=job, shoe=shoe, kind=kind)


def by_name(**changes) -> ColumnTransformer:
    output = {"numbers": ["age"], "words": ["job"]} | changes
    words = OneHotEncoder(handle_unknown="ignore")
    return ColumnTransformer([("numbers", StandardScaler(), output["numbers"]), ("words", words, output["words"])])


NAMED = {
    "by names": make_pipeline(by_name(), LogisticRegression()),
    "by types": make_pipeline(
        by_name(numbers=make_column_selector("age"), words=make_column_selector(dtype_exclude="number")),
        LogisticRegression(),
    ),
    "a text by its name": make_pipeline(
        ColumnTransformer([("text", CountVectorizer(), "job"), ("rest", "passthrough", ["shoe[0]", "shoe[1]"])]),
        LogisticRegression(),
    ),
    "within a search": GridSearchCV(make_pipeline(by_name(), LogisticRegression()), {"logisticregression__C": [1, 2]}),
    "within a vote": VotingClassifier([("one", make_pipeline(by_name(), LogisticRegression()))], voting="soft"),
}


def frame(train: ModelRows) -> pd.DataFrame:
    columns = train.columns
    built = {"age": columns["age"], "job": columns["job"]} | {f"shoe[{n}]": columns["shoe"][:, n] for n in range(2)}
    return pd.DataFrame(built)


@pytest.mark.parametrize("name", NAMED)
def test_columns_are_selected_by_their_names_and_types(name):
    train = people()
    by_hand = clone(NAMED[name]).fit(frame(train), train.columns["kind"])
    answers = fitted(NAMED[name], PEOPLE, train).predict(train.columns)
    assert answers.prediction.tolist() == by_hand.predict(frame(train)).tolist()
    assert np.allclose(answers.scores, by_hand.predict_proba(frame(train)), atol=1e-6)


def test_numbers_alone_are_named_too_where_columns_are_selected_by_name():
    train, task = points(), Task("classification", ("x",), "kind", classes=5)
    named = make_pipeline(ColumnTransformer([("x", StandardScaler(), ["x"])]), LogisticRegression())
    placed = make_pipeline(ColumnTransformer([("x", StandardScaler(), [0])]), LogisticRegression())
    first, second = (fitted(item, task, train).predict(train.columns) for item in (named, placed))
    assert np.array_equal(first.scores, second.scores)


def test_texts_for_an_estimator_of_numbers_are_refused_with_the_way_on():
    with pytest.raises(ModelError, match="reads only numbers, and job is text: begin the pipeline with a Column"):
        fitted(make_pipeline(StandardScaler(), LogisticRegression()), PEOPLE, people())


def test_without_pandas_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtra, match=r"pandas DataFrame needs .*: pip install 'farshift\[notebook\]'"):
        fitted(NAMED["by names"], PEOPLE, people())


def test_a_weight_is_handed_to_an_estimator_that_takes_weights():
    train = points()
    train.columns["weight"] = WEIGHT / 2
    by_hand = LogisticRegression().fit(matrix(train), train.columns["kind"], sample_weight=WEIGHT / 2)
    answers = fitted(LogisticRegression(), POINTS, train).predict(train.columns)
    assert np.array_equal(answers.scores[:, [1, 3]], by_hand.predict_proba(matrix(train)).astype(np.float32))


COPIED = {
    "numbers": (POINTS, points(), matrix, make_pipeline(StandardScaler(), KNeighborsClassifier(5))),
    "texts": (
        WORDS,
        rows(text=TEXTS, kind=np.arange(24) % 3),
        lambda _: TEXTS,
        make_pipeline(CountVectorizer(), MultinomialNB()),
    ),
    "names": (PEOPLE, people(), frame, make_pipeline(by_name(), KNeighborsClassifier(5))),
}


@pytest.mark.parametrize("features", COPIED)
def test_a_whole_weight_becomes_copies_for_an_estimator_that_takes_none(features):
    task, train, features_of, built = COPIED[features]
    given, weight = features_of(train), WEIGHT[: len(train)]
    train.columns["weight"] = weight
    copies = np.repeat(np.arange(len(train)), weight)
    by_hand = clone(built).fit(
        given.iloc[copies] if features == "names" else given[copies], train.columns["kind"][copies]
    )
    answers = fitted(built, task, train).predict(train.columns)
    assert np.allclose(answers.scores[:, by_hand.classes_], by_hand.predict_proba(given), atol=1e-6)


def test_a_broken_weight_is_refused_by_an_estimator_that_takes_none():
    train = points()
    train.columns["weight"] = WEIGHT / 2
    with pytest.raises(ModelError, match="KNeighborsClassifier has no sample_weight, and the weights are not whole"):
        fitted(KNeighborsClassifier(), POINTS, train)


@pytest.mark.skipif(find_spec("catboost") is None, reason="catboost is not installed")
def test_catboost_gets_the_seed_and_answers_one_class_a_row():
    from catboost import CatBoostClassifier

    train = rows(x=np.arange(60.0) % 7, image=np.zeros((60, 2, 2)), kind=np.arange(60) % 3)
    quiet = {"iterations": 4, "allow_writing_files": False, "logging_level": "Silent"}
    models = [fitted(CatBoostClassifier(**quiet), POINTS, train, seed) for seed in (0, 1)]
    seeds = [model.estimator.get_params()["random_state"] for model in models]
    assert len(set(seeds)) == 2
    answers = models[0].predict(train.columns)
    assert answers.prediction.shape == (60,)
    assert np.array_equal(answers.prediction, models[0].estimator.predict(matrix(train))[:, 0])
    own = fitted(CatBoostClassifier(**quiet, random_seed=5), POINTS, train)
    assert own.estimator.get_params()["random_seed"] == 5


def test_an_open_random_state_is_the_seed_s_and_the_user_s_own_object_is_left_alone():
    own = RandomForestClassifier(3, max_depth=2)
    train = points()
    scores = [fitted(own, POINTS, train, seed).predict(train.columns).scores for seed in (0, 0, 1)]
    assert np.array_equal(scores[0], scores[1])
    assert not np.array_equal(scores[0], scores[2])
    assert own.random_state is None
    assert not hasattr(own, "classes_")
    fixed = [fitted(RandomForestClassifier(3, random_state=5), POINTS, train, seed) for seed in (0, 1)]
    assert np.array_equal(*(item.predict(train.columns).scores for item in fixed))
