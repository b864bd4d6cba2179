"""A scikit-learn estimator or pipeline as a model: inputs flattened to one numeric matrix, in the task's order."""

from __future__ import annotations

import copy
import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...splits.draws import key
from ...splits.errors import ModelError
from ..model import Budget, Columns, Model, Task, TrainingRows


def adapt(thing: Any, task: Task, seed: int) -> Model | None:
    """Anything with scikit-learn's `get_params`, `fit` and `predict`. Never imports scikit-learn.

    Every `random_state` that is None is set by the seed; one that the user fixed stays."""
    if isinstance(thing, type) or not all(hasattr(thing, name) for name in ("get_params", "fit", "predict")):
        return None
    thing = copy.deepcopy(thing)  # the user's own object stays as it is
    known = thing.get_params(deep=True)
    open_states = [name for name in known if name.split("__")[-1] == "random_state" and known[name] is None]
    thing.set_params(**{name: key(f"{name}/{seed}") % 2**32 for name in open_states})
    return FromEstimator(thing, task)


class FromEstimator:
    """Fits and asks an estimator. Tensors are flattened, numbers are columns; text inputs are refused."""

    def __init__(self, estimator: Any, task: Task) -> None:
        if task.type != "classification":
            raise ModelError(f"a scikit-learn estimator predicts classes, and this task is a {task.type} task")
        self.estimator, self.task = estimator, task

    def _matrix(self, columns: Columns) -> NDArray[np.float64]:
        parts = []
        for name in self.task.inputs:
            values = columns[name]
            if values.dtype == object:
                raise ModelError(f"input {name!r} is text: put a vectoriser of your own in front of the estimator")
            parts.append(np.asarray(values, np.float64).reshape(len(values), -1))
        return np.concatenate(parts, axis=1)

    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> None:
        columns = train.numpy()
        weight = columns["weight"]
        takes_weight = "sample_weight" in inspect.signature(self.estimator.fit).parameters
        extra = {"sample_weight": weight} if takes_weight and (weight != 1).any() else {}
        self.estimator.fit(self._matrix(columns), columns[self.task.label], **extra)

    def predict(self, batch: Columns) -> NDArray[Any]:
        return np.asarray(self.estimator.predict(self._matrix(batch)))
