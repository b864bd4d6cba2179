"""A baseline: a recipe made into a model that the harness can train and ask."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..benchmarks.adapters.scikit_learn import answers_of, fit_weighted
from ..benchmarks.answers import Answers
from ..benchmarks.model import Budget, Columns, Task, TrainingRows
from ..splits.draws import key
from ..splits.errors import BadDefinition, MissingExtra, ModelError
from ..splits.plugins import module
from .recipe import Recipe, check, defaults, unknown_setting

if TYPE_CHECKING:
    from .encoding import ClassEncoding, SequenceEncoding

PREDICT_ROWS = 512
"""Rows that a network predicts at once."""


def check_task(recipe: Recipe, task: Task) -> None:
    """Refuse a recipe that cannot do a task, before anything is spent."""
    if recipe.estimator:
        if task.type != "classification":
            raise ModelError(f"{recipe.name} is a classifier, and this is a {task.type} task")
        return
    assert recipe.network
    sort = module("baselines/networks", recipe.network, "network").TASK
    if sort not in (task.type, "aligned") or (sort == "aligned" and not task.aligned):
        raise ModelError(
            f"{recipe.name}: the network {recipe.network} is for {sort} tasks, and this is a {task.type} task"
        )


class Baseline:
    """A recipe on one benchmark with one seed. A `TrainableModel`: `fit` once, then `predict`."""

    def __init__(self, recipe: Recipe, task: Task, seed: int, benchmark: str) -> None:
        try:
            import sklearn  # noqa: F401
            import torch  # noqa: F401
        except ImportError as error:
            raise MissingExtra("a baseline", "train") from error
        check(recipe, f"recipe {recipe.name}")
        check_task(recipe, task)
        self.recipe, self.task, self.seed, self.benchmark = recipe, task, seed, benchmark
        self.name = f"{recipe.name}/{benchmark}/{seed}"
        self._model: _Network | _Estimator | None = None

    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> dict[str, float]:
        """Train from scratch on `train`; `val` is not looked at: the last weights are the answer.

        Steps are `budget.steps` if given, else the recipe's for `budget.name`. Returns remarks: final loss,
        steps and parameters of a network; rows fitted of an estimator.
        """
        rows = dict(train.numpy())
        weight = np.asarray(rows.pop("weight", np.ones(len(train))), np.float64)
        if not (weight > 0).all():
            raise ModelError(f"{self.name}: a training row has a weight that is not positive")
        sort = _Estimator if self.recipe.estimator else _Network
        self._model = sort(self, rows, weight, budget)
        return self._model.remarks

    def predict(self, batch: Columns) -> Answers | list[str]:
        """One class with its probabilities, or one text, for each row of `batch`, in its order."""
        if self._model is None:
            raise ModelError(f"{self.name}: fit it before it predicts")
        return self._model.predict(batch)


class _Estimator:
    """A scikit-learn estimator on one-hot categories and scaled numbers."""

    def __init__(self, of: Baseline, rows: Mapping[str, NDArray[Any]], weight: NDArray[np.float64], _: Budget) -> None:
        from .encoding import ClassEncoding

        self.task = of.task
        self.encoding = ClassEncoding(of.task, rows)
        self.estimator = estimator(of.recipe, of.benchmark, of.name)
        labels = np.asarray(rows[of.task.label])
        fit_weighted(self.estimator, self.encoding.features(rows), labels, weight)
        self.remarks = {"rows": float(len(labels))}

    def predict(self, batch: Columns) -> Answers:
        return answers_of(self.estimator, self.encoding.features(batch), self.task)


def estimator(recipe: Recipe, benchmark: str, name: str) -> Any:
    """The recipe's scikit-learn estimator, unfitted, its `random_state` drawn from `name`."""
    assert recipe.estimator
    place, _, kind = recipe.estimator.rpartition(".")
    try:
        made = getattr(importlib.import_module(place), kind)()
    except (ImportError, AttributeError) as error:
        raise BadDefinition(f"recipe {recipe.name}: scikit-learn has no {recipe.estimator}: {error}") from error
    known = made.get_params()
    settings = recipe.settings_on(benchmark)
    for setting in settings:
        if setting not in known:
            raise unknown_setting(setting, known, f"recipe {recipe.name}")
    if "random_state" in known and "random_state" not in settings:
        settings["random_state"] = key(f"{name}/estimator") % 2**32
    return made.set_params(**settings)


class _Network:
    """A network trained by the trainer."""

    def __init__(
        self, of: Baseline, rows: Mapping[str, NDArray[Any]], weight: NDArray[np.float64], budget: Budget
    ) -> None:
        import torch

        from .encoding import encoding
        from .trainer import seeded, train

        recipe = of.recipe
        assert recipe.network and recipe.algorithm
        settings = defaults(recipe) | recipe.settings_on(of.benchmark)
        # Outputs that were fitted to one-hot targets are no logits, and their softmax no probability.
        self.gives_logits = settings.get("loss") == "cross-entropy"
        steps = budget.steps or recipe.steps(budget.name, of.benchmark)
        algorithm, network = (
            module("baselines/algorithms", recipe.algorithm, "algorithm"),
            module("baselines/networks", recipe.network, "network"),
        )
        self.encoding: ClassEncoding | SequenceEncoding = encoding(of.task, rows, settings)
        self.device = budget.device
        with seeded(f"{of.name}/weights"):
            self.network = network.Network(self.encoding.sizes, settings).to(self.device)
            self.remarks = asdict(
                train(
                    self.network,
                    partial(algorithm.objective, settings=settings),
                    self.encoding.encode(rows).to(self.device),
                    torch.from_numpy(weight),
                    settings,
                    steps,
                    of.name,
                )
            )

    def predict(self, batch: Columns) -> Answers | list[str]:
        from .encoding import ClassEncoding

        if isinstance(self.encoding, ClassEncoding):
            return self._classes(self.encoding, batch)
        return self._texts(self.encoding, batch)

    def _classes(self, encoding: ClassEncoding, batch: Columns) -> Answers:
        import torch

        inputs = encoding.inputs(batch)
        found = [np.empty((0, encoding.sizes.outputs), np.float32)]
        with torch.no_grad():
            for start in range(0, len(inputs[0]), PREDICT_ROWS):
                some = (x[start : start + PREDICT_ROWS].to(self.device) for x in inputs)
                found.append(self.network(*some).softmax(dim=1).cpu().numpy())
        scores = np.concatenate(found)
        return Answers.all_given(scores.argmax(axis=1), scores if self.gives_logits else None)

    def _texts(self, encoding: SequenceEncoding, batch: Columns) -> list[str]:
        """Rows of like length are decoded together, and given back in the batch's order."""
        source, lengths = encoding.inputs(batch)
        order = np.argsort(lengths, kind="stable")
        texts = np.empty(len(order), object)
        for start in range(0, len(order), PREDICT_ROWS):
            some = order[start : start + PREDICT_ROWS]
            ids = source[some, : max(1, lengths[some].max())].to(self.device)
            texts[some] = encoding.target.texts(self.network.generate(ids, encoding.limit).cpu().numpy())
        return list(texts)
