"""A scikit-learn estimator or pipeline as a model: inputs flattened to one numeric matrix, in the task's order; a
single text column as strings if the estimator begins with a vectoriser; a DataFrame if it selects columns by name, or
if the inputs are numbers and texts."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import derive_key
from ...core.errors import MissingExtra, ModelError, shorten_list
from ...loaders.batching.encoded import is_audio, is_encoded
from ...loaders.batching.input_format import InputFormat
from ..answers import Answers
from ..model import Budget, Columns, Model, Task, TrainingRows

if TYPE_CHECKING:
    import pandas as pd


SIDE = 32
"""Side in pixels to which encoded images are resized, unless the estimator has the attribute `images`."""

_SORTS = {"classification": "classifier", "regression": "regressor"}


def adapt(thing: Any, task: Task, seed: int) -> Model | None:
    """Return a model for an object with scikit-learn's `get_params`, `fit` and `predict`. Does not import scikit-learn.

    Each `random_state` that is None is set from the seed; one that the user set stays."""
    if isinstance(thing, type) or not all(hasattr(thing, name) for name in ("get_params", "fit", "predict")):
        return None
    thing = copy.deepcopy(thing)  # the user's object is not changed
    known = list_parameters(thing)
    open_states = [name for name in known if name.split("__")[-1] == "random_state" and known[name] is None]
    thing.set_params(**{name: derive_key(f"{name}/{seed}") % 2**32 for name in open_states})
    return EstimatorModel(thing, task)


def list_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters of an estimator and of those within it, by name, as they are set. CatBoost's `get_params` names
    only those that were given: the others are None, and so is its seed, unless it was given by either of its names."""
    known: dict[str, Any] = estimator.get_params(deep=True)
    if not any(base.__module__.startswith("catboost") for base in type(estimator).__mro__):
        return known
    seeds = {"random_seed", "random_state"}
    others = inspect.signature(type(estimator)).parameters.keys() - (seeds if seeds & known.keys() else set())
    return dict.fromkeys(sorted(others)) | known


class EstimatorModel:
    """A fitted estimator: a classifier for classification tasks, a regressor for regression tasks.

    Tensors are flattened, numbers are columns. A single text input is passed as a list of `str` to an estimator whose
    first step reads raw text. Several inputs with texts among them, and the inputs of an estimator that selects columns
    by name, become a DataFrame; any other text raises an error. Encoded images become uint8 pixels of `SIDE` x `SIDE`,
    or the format that the estimator's attribute `images` requests. Scores are class probabilities, if the estimator has
    them.
    """

    def __init__(self, estimator: Any, task: Task) -> None:
        sort = _SORTS.get(task.type)
        given = _get_estimator_type(estimator)
        if sort is None or given not in (sort, None):
            advice = f"use a {sort}" if sort else "write a class whose predict returns what docs/evaluate.md says"
            what = f"{type(estimator).__name__} is a scikit-learn {given or 'estimator'}"
            raise ModelError(f"{what}, but this is a {task.type} task: {advice}")
        self.estimator, self.task = estimator, task
        own, request = hasattr(estimator, "images"), InputFormat.of(estimator)
        self.forms = InputFormat(request.images if own else SIDE, request.audio, not own)
        self.reads_objects = (own or hasattr(estimator, "audio")) and len(task.inputs) == 1
        readers = [*_iterate_readers(estimator)]
        self.reads_text = all(hasattr(reader, "build_analyzer") for reader in readers)
        self.selects_by_name = any(map(_selects_by_name, readers))
        if self.reads_text and len(task.inputs) != 1:
            raise ModelError(f"a vectoriser reads one text input, and this task has {', '.join(task.inputs)}")

    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> None:
        """Fit on `train`. Weights are passed as `sample_weight` if the estimator accepts it, else rows are repeated;
        `ModelError` if the weights are not whole numbers either. `val` is not used."""
        columns = train.numpy()
        features = self._features(columns)
        try:
            fit_weighted(self.estimator, features, columns[self.task.label], columns["weight"])
        except ValueError as error:
            if not hasattr(features, "iloc") or "could not convert string to float" not in str(error):
                raise
            texts = [name for name in self.task.inputs if columns[name].dtype == object]
            raise ModelError(
                f"{type(self.estimator).__name__} reads only numbers, and {shorten_list(texts)} is text: begin the "
                "pipeline with a ColumnTransformer that selects columns by name, with a OneHotEncoder or a vectoriser "
                "for the text; or write a class with fit and predict"
            ) from error

    def predict(self, batch: Columns) -> Answers:
        """Return the estimator's predictions, with class probabilities if it has them."""
        return predict_answers(self.estimator, self._features(batch), self.task)

    def _features(self, columns: Columns) -> Any:
        """Return the inputs as the estimator needs them: an (n, k) array, a list of n texts or files, or a
        DataFrame."""
        given = {name: columns[name] for name in self.task.inputs}
        objects = {name: values for name, values in given.items() if values.dtype == object}
        texts = {name for name, values in objects.items() if len(values) and isinstance(values[0], str)}
        for name, values in objects.items():
            if self.reads_text:
                return list(values)
            if self.reads_objects and name not in texts:
                return list(values)  # in the requested format: Pillow images, audio samples, files
            if name not in texts or not (self.selects_by_name or len(given) > 1):
                raise ModelError(f"input {name!r} {_explain_unreadable(values)}")
        if texts or self.selects_by_name:
            return make_frame(given, self.estimator)
        return np.concatenate(
            [np.asarray(column, np.float64).reshape(len(column), -1) for column in given.values()], axis=1
        )


def _explain_unreadable(values: NDArray[Any]) -> str:
    if is_encoded(values) and is_audio(values):
        return "is encoded audio: make their reader the first step of a pipeline, and set its `audio` to a rate"
    return (
        "is text: make a vectoriser the first step of a pipeline, or a ColumnTransformer that selects columns by name"
    )


def fit_weighted(estimator: Any, features: Any, label: NDArray[Any], weight: NDArray[Any]) -> None:
    """Fit an estimator on weighted rows. Weights are passed as `sample_weight` if it accepts it, else rows are
    repeated; `ModelError` if the weights are not whole numbers either.

    features: (n, k) array, list of n texts or DataFrame of n rows; label, weight: (n,)."""
    if (weight == weight[0]).all():
        estimator.fit(features, label)
    elif "sample_weight" in inspect.signature(estimator.fit).parameters:
        estimator.fit(features, label, sample_weight=weight)
    elif (weight == weight.astype(np.int64)).all():
        copies = np.repeat(np.arange(len(label)), weight.astype(np.int64))
        rows = features.iloc if hasattr(features, "iloc") else features
        repeated = [features[row] for row in copies] if isinstance(features, list) else rows[copies]
        estimator.fit(repeated, label[copies])
    else:
        raise ModelError(f"{type(estimator).__name__} has no sample_weight, and the weights are not whole numbers")


def predict_answers(estimator: Any, features: Any, task: Task) -> Answers:
    """Return a fitted estimator's predictions for n rows, with class probabilities if it has them. An estimator with
    its own decision threshold may predict another class than the most probable one."""
    prediction = np.asarray(estimator.predict(features))
    if prediction.ndim == 2 and prediction.shape[1] == 1:  # CatBoost's, of more than two classes
        prediction = prediction[:, 0]
    if task.type == "regression" or not hasattr(estimator, "predict_proba"):
        return Answers.all_given(prediction)
    scores = np.zeros((len(prediction), task.classes or 0), np.float32)
    scores[:, estimator.classes_] = estimator.predict_proba(features)
    return Answers.all_given(prediction, scores)


def _get_estimator_type(estimator: Any) -> str | None:
    """`classifier`, `regressor` .., or None if the estimator does not declare it."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    sort: str | None = tags().estimator_type if tags else getattr(estimator, "_estimator_type", None)
    return sort


def _iterate_readers(estimator: Any) -> Iterator[Any]:
    """Yield the parts of an estimator that read the inputs themselves: the first step of a pipeline, the parts of a
    union or a voting ensemble, the estimator within a search; the estimator if it has none of these."""
    parts = [step for _, step in (getattr(estimator, "steps", None) or ())[:1]]
    for name in ("transformer_list", "estimators"):
        parts += [part[1] if isinstance(part, tuple) else part for part in getattr(estimator, name, None) or ()]
    inner = getattr(estimator, "estimator", None)
    parts += [] if inner is None else [inner]
    if not parts:
        yield estimator
    for part in parts:
        yield from _iterate_readers(part)


def _selects_by_name(reader: Any) -> bool:
    """Whether a `ColumnTransformer` selects columns by name or type, which needs a DataFrame."""
    for _, _, columns in getattr(reader, "transformers", None) or ():
        several = columns if isinstance(columns, list | tuple | np.ndarray) else [columns]
        if hasattr(columns, "dtype_include") or any(isinstance(column, str) for column in several):
            return True
    return False


def make_frame(columns: Mapping[str, NDArray[Any]], estimator: Any) -> pd.DataFrame:
    """Return a DataFrame of n rows with a column for each input: numbers in their own type, texts as objects; a tensor
    has a column for each of its numbers (`x[0]`, `x[1]` ..). `MissingExtra` without pandas."""
    try:
        import pandas as pd
    except ImportError as error:
        what = f"{type(estimator).__name__} on inputs as the columns of a pandas DataFrame"
        raise MissingExtra(what, "notebook") from error
    series: dict[str, Any] = {}
    for name, values in columns.items():
        if values.ndim == 1:
            series[name] = pd.Series(values, dtype=values.dtype)  # keep the object type: pandas would infer another one
        else:
            flat = values.reshape(len(values), -1)
            series |= {f"{name}[{index}]": flat[:, index] for index in range(flat.shape[1])}
    return pd.DataFrame(series)
