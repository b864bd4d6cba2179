"""Every scikit-learn recipe trains the estimator that it names, to what that estimator alone would be."""

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from farshift import Answers
from farshift.baselines.baseline import Baseline
from farshift.baselines.recipe import find_recipe as shipped
from farshift.baselines.recipe import load_recipes
from farshift.benchmarks.model import Budget, Task
from farshift.core.draws import derive_key
from farshift.core.errors import MissingExtra, ModelError
from pydantic import ValidationError
from sklearn.datasets import load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from .toys import TURN, Rows, commands, words

DIGIT = Task("classification", ("pixels", "odd"), "digit", classes=3, categories=("odd",))
DIRECT = {
    "boosted-trees": HistGradientBoostingClassifier(early_stopping=False),
    "extra-trees": ExtraTreesClassifier(),
    "knn": KNeighborsClassifier(3),
    "logistic-regression": LogisticRegression(max_iter=1000),
    "naive-bayes": GaussianNB(var_smoothing=1e-2),
    "random-forest": RandomForestClassifier(),
    "ridge-classifier": RidgeClassifier(),
    "svm-rbf": SVC(),
}
BOOSTED = {
    "xgboost": ("xgboost.XGBClassifier", {}),
    "lightgbm": (
        "lightgbm.LGBMClassifier",
        {"deterministic": True, "force_row_wise": True, "n_jobs": 0, "verbosity": -1},
    ),
    "catboost": ("catboost.CatBoostClassifier", {"allow_writing_files": False, "logging_level": "Silent"}),
}
"""Estimators of the extra `boosting`, each tested where its package is installed."""
TREES = {"boosted-trees", "extra-trees", "random-forest"}
"""They draw rows, or count the rows of a leaf, whatever their weights."""
WHOLE_ANSWERS = {"most-frequent", "nearest-answer"}
IN_ROUNDS = {"sleeping-experts"}
"""Held to their rounds in tests of their own."""
REGRESSORS = {"random-forest-regression": RandomForestRegressor(), "ridge": Ridge()}
COUNT = Task("regression", ("pixels", "odd"), "count")
WITHOUT_PROBABILITIES = {"ridge-classifier", "svm-rbf"}


@pytest.fixture(scope="module", autouse=True)
def _one_openmp_thread() -> Iterator[None]:
    """Small trees are many times slower on threads that wait for each other."""
    with threadpool_limits(1):
        yield


def digits() -> tuple[Rows, Rows]:
    """Pixels, whether the row's number is odd (a category of no use), and digits 0 to 2: 150 rows and 150 others."""
    images, labels = load_digits(n_class=3, return_X_y=True)
    rows = [
        Rows(pixels=images[some].reshape(-1, 8, 8), odd=np.arange(150) % 2, digit=labels[some])
        for some in (slice(0, 150), slice(150, 300))
    ]
    return rows[0], rows[1]


def features(rows: Rows, scale: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    flat = rows.columns["pixels"].reshape(len(rows), -1) / np.float32(scale)
    return np.concatenate([np.eye(2)[rows.columns["odd"]], flat], axis=1).astype(np.float32)


def fitted(name: str, train: Rows) -> Baseline:
    model = Baseline(shipped(name), DIGIT, 7, "toy/toy")
    model.fit(train, None, Budget("quick"))
    return model


def test_every_estimator_recipe_is_among_those_tested() -> None:
    own = {name for name, built in load_recipes().items() if built.estimator and not built.encoder}
    assert own == set(DIRECT) | set(BOOSTED) | WHOLE_ANSWERS | set(REGRESSORS) | IN_ROUNDS


def make_direct(name: str) -> Any:
    if name in DIRECT:
        return DIRECT[name]
    address, settings = BOOSTED[name]
    package, _, kind = address.rpartition(".")
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    return getattr(import_module(package), kind)(**settings)


@pytest.mark.parametrize("name", BOOSTED)
def test_without_its_package_a_recipe_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=rf"^recipe {name} needs .*: pip install 'farshift\[boosting\]'$"):
        fitted(name, digits()[0])


@pytest.mark.parametrize("name", [*DIRECT, *BOOSTED])
def test_a_recipe_is_its_estimator_with_a_seed_of_its_own(name: str) -> None:
    direct, (train, test) = make_direct(name), digits()
    model = fitted(name, train)
    if "random_state" in direct.get_params() or name in BOOSTED:
        direct.set_params(random_state=derive_key(f"{model.name}/estimator") % 2**32)
    direct.fit(features(train, 16), train.columns["digit"])
    answers = model.predict(test.only(*DIGIT.inputs))
    assert isinstance(answers, Answers)
    assert answers.prediction.tolist() == direct.predict(features(test, 16)).ravel().tolist()
    assert np.mean(answers.prediction == test.columns["digit"]) > 0.75
    if name in WITHOUT_PROBABILITIES:
        assert answers.scores is None
    else:
        assert answers.scores is not None
        assert np.allclose(answers.scores, direct.predict_proba(features(test, 16)), atol=1e-6)


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_is_its_estimator_on_numbers_and_goes_beyond_the_integers_of_training(name: str) -> None:
    train, test = digits()
    test.columns["odd"] = np.full(150, 9)
    ink = [rows.columns["pixels"].sum(axis=(1, 2)) for rows in (train, test)]
    model = Baseline(shipped(name), COUNT, 7, "toy/toy")
    model.fit(Rows(**train.columns | {"count": ink[0]}), None, Budget("quick"))
    direct = REGRESSORS[name]
    if "random_state" in direct.get_params():
        direct.set_params(random_state=derive_key(f"{model.name}/estimator") % 2**32)
    given = [
        np.column_stack([rows.columns["pixels"].reshape(150, -1) / np.float32(16), rows.columns["odd"]])
        for rows in (train, test)
    ]
    direct.fit(given[0].astype(np.float32), ink[0])
    answers = model.predict(test.only(*COUNT.inputs))
    assert isinstance(answers, Answers)
    assert answers.scores is None
    assert np.allclose(answers.prediction, direct.predict(given[1].astype(np.float32)), rtol=1e-4)


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_regressor_refuses_classes(name: str) -> None:
    with pytest.raises(ModelError, match=f"^{name} is for regression tasks, and this is a classification task$"):
        fitted(name, digits()[0])


@pytest.mark.parametrize("name", sorted(set(DIRECT) - TREES))
def test_a_row_of_weight_two_counts_as_two_rows(name: str) -> None:
    train, test = digits()
    weight = np.where(train.columns["digit"] == 1, 2.0, 1.0)
    twice = np.repeat(np.arange(150), weight.astype(int))
    weighted = Rows(**train.columns | {"weight": weight})
    repeated = Rows(**{column: values[twice] for column, values in train.columns.items() if column != "weight"})
    result, expected = (fitted(name, rows).predict(test.only(*DIGIT.inputs)) for rows in (weighted, repeated))
    assert isinstance(result, Answers)
    assert isinstance(expected, Answers)
    assert np.mean(result.prediction == expected.prediction) > 0.98


@pytest.mark.parametrize("name", DIRECT)
def test_an_estimator_refuses_a_sequence_task(name: str) -> None:
    with pytest.raises(ModelError, match=f"{name} is for classification tasks, and this is a sequence task"):
        Baseline(shipped(name), TURN, 0, "toy/toy").fit(commands(), None, Budget("quick"))


def answered(name: str, task: Task, train: Rows, test: Rows) -> list[str]:
    model = Baseline(shipped(name), task, 0, "toy/toy")
    model.fit(train, None, Budget("quick"))
    result = model.predict(test.only(*task.inputs))
    assert isinstance(result, list)
    return result


def test_the_nearest_answer_is_that_of_the_training_text_which_shares_most_of_its_tokens() -> None:
    train = Rows(command=words(["walk left", "run right twice", "look ( ( a"]), actions=words(["L W", "T R T R", "K"]))
    test = Rows(command=words(["run right", "walk left left", "( ( b"]), actions=words(["T R", "L L W", "-"]))
    assert answered("nearest-answer", TURN, train, test) == ["T R T R", "L W", "K"]


def test_texts_of_characters_are_near_where_they_share_runs_of_characters() -> None:
    task = Task("sequence", ("bits",), "sums", tokens="character")
    train = Rows(bits=words(["00000000", "10101010"]), sums=words(["0", "1"]))
    test = Rows(bits=words(["1010", "0001"]), sums=words(["", ""]))
    assert answered("nearest-answer", task, train, test) == ["1", "0"]


def test_the_most_frequent_answer_is_given_whatever_is_asked_and_weights_count() -> None:
    texts = words(["a", "b", "c"])
    train = Rows(command=texts, actions=words(["X", "X", "Y"]))
    assert answered("most-frequent", TURN, train, train) == ["X", "X", "X"]
    heavy = Rows(command=texts, actions=words(["X", "X", "Y"]), weight=np.array([1.0, 1.0, 3.0]))
    assert answered("most-frequent", TURN, heavy, train) == ["Y", "Y", "Y"]


def test_a_network_recipe_cannot_ask_for_whole_answers() -> None:
    card = shipped("mlp").model_dump(mode="json", exclude_none=True) | {"whole_answers": True}
    with pytest.raises(ValidationError, match="whole_answers is for estimators"):
        type(shipped("mlp")).model_validate(card)


def test_only_an_estimator_of_numbers_is_a_regressor() -> None:
    network = shipped("mlp").model_dump(mode="json", exclude_none=True) | {"regressor": True}
    with pytest.raises(ValidationError, match="regressor is for estimators"):
        type(shipped("mlp")).model_validate(network)
    both = shipped("ridge").model_dump(mode="json", exclude_none=True) | {"whole_answers": True}
    with pytest.raises(ValidationError, match="whole_answers is for classifiers"):
        type(shipped("ridge")).model_validate(both)
