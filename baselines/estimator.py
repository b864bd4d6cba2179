"""Baselines trained by scikit-learn, XGBoost, LightGBM or CatBoost: an estimator on one-hot categories, scaled numbers
and hashed texts.

On a sequence task each whole answer of the training rows is a class. Such a baseline can only repeat an answer that it
has seen, so its score shows what is possible without composition.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.adapters.scikit_learn import fit_weighted, list_parameters, predict_answers
from ..benchmarks.answers import Answers
from ..benchmarks.model import Columns, Task
from ..core.draws import derive_key
from ..core.errors import BadDefinition, MissingExtra
from .encoding.bad_files import answer_readable_rows
from .encoding.encoding import AnswerEncoding, RowEncoding
from .encoding.frozen import Reader
from .encoding.log_mel import SpectrogramEncoding, is_audio_task
from .recipe import BOOSTING, Recipe, make_unknown_setting_error

_TOKENS: dict[str, dict[str, Any]] = {
    "whitespace": {"token_pattern": r"\S+", "ngram_range": (1, 2), "lowercase": False},
    "character": {"analyzer": "char", "ngram_range": (1, 3), "lowercase": False},
}
"""How a text is split where the answer is a text: at white space, also around punctuation, or at every character."""


@dataclass(frozen=True)
class Estimator:
    """One fitted estimator, a model. texts: the answers that are its classes, in a sequence task."""

    task: Task
    estimator: Any
    coding: AnswerEncoding
    remarks: dict[str, Any]
    read: Reader
    texts: NDArray[Any] | None = None

    def predict(self, batch: Columns) -> Answers | list[str]:
        batch = self.read(batch)
        if self.texts is not None:
            texts: list[str] = self.texts[self.estimator.predict(self.coding.features(batch))].tolist()
            return texts
        return answer_readable_rows(self.coding, batch, self._predict_classes)[0]

    def checkpoints(self) -> Iterator[tuple[str, Estimator]]:
        """The only checkpoint."""
        return iter([("last", self)])

    def _predict_classes(self, batch: Columns) -> list[Answers]:
        if not len(batch[self.task.inputs[0]]):  # estimators reject an empty batch
            return [Answers.all_given(np.zeros(0, np.int64))]
        return [predict_answers(self.estimator, self.coding.features(batch), self.task)]


def fit_estimator(
    recipe: Recipe,
    task: Task,
    benchmark: str,
    name: str,
    extra: Mapping[str, Any],
    rows: Mapping[str, NDArray[Any]],
    weight: NDArray[np.float64],
    read: Reader,
) -> Estimator:
    """Fit a recipe's estimator to rows (columns by name, first axis the row) with weights (n,). name: seeds it. extra:
    settings that differ from the recipe's. read: of a batch's columns, before they are encoded."""
    labels = np.asarray(rows[task.label])
    texts: NDArray[Any] | None = None
    if task.type == "sequence":
        texts, labels = np.unique(labels.astype(str), return_inverse=True)
        known = replace(task, type="classification", classes=len(texts))
        coding: AnswerEncoding = RowEncoding(known, rows, buckets=1024, pieces=_TOKENS[task.tokens])
    else:
        coding = SpectrogramEncoding(task, rows) if is_audio_task(task, rows) else RowEncoding(task, rows)
    estimator = make_estimator(recipe, benchmark, name, extra)
    fit_weighted(estimator, coding.features(rows), labels, weight)
    remarks: dict[str, Any] = {"rows": float(len(labels))}
    if texts is None:
        remarks["encoding"] = coding.encoding
    if coding.decoder:
        remarks["decoder"] = coding.decoder
    return Estimator(task, estimator, coding, remarks, read, texts)


def make_estimator(recipe: Recipe, benchmark: str, name: str, extra: Mapping[str, Any]) -> Any:
    """Make the recipe's estimator, unfitted; `name` seeds its `random_state`. `MissingExtra` where its package is not
    installed."""
    assert recipe.estimator
    module_name, _, kind = recipe.estimator.rpartition(".")
    try:
        model = getattr(importlib.import_module(module_name), kind)()
    except (ImportError, AttributeError) as error:
        if getattr(error, "name", None) in BOOSTING:
            raise MissingExtra(f"recipe {recipe.name}", "boosting") from error
        raise BadDefinition(f"recipe {recipe.name}: there is no {recipe.estimator}: {error}") from error
    known = list_parameters(model)
    settings = recipe.settings_on(benchmark) | dict(extra)
    # LightGBM takes others by their names in its library, and tells of those that it does not know.
    open_ended = any(given.kind is given.VAR_KEYWORD for given in signature(type(model)).parameters.values())
    for setting in extra if open_ended else settings:
        if setting not in known:
            raise make_unknown_setting_error(setting, known, f"recipe {recipe.name}")
    if "random_state" in known and "random_state" not in settings:
        settings["random_state"] = derive_key(f"{name}/estimator") % 2**32
    return model.set_params(**settings)
