"""A baseline as a model of its own: a recipe on one benchmark with one seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..benchmarks.answers import Answers
from ..benchmarks.model import Budget, Columns, Task, TrainingRows
from ..core.errors import MissingExtra, ModelError
from .compatibility import list_required_data
from .recipe import Recipe

if TYPE_CHECKING:
    from .estimator import Estimator
    from .training.trained_group import Replica


class Baseline:
    """A recipe on one benchmark with one seed. A `TrainableModel`: `fit` once, then `predict`."""

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        seed: int,
        benchmark: str,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """settings: values of this replica that differ from its recipe's. `ModelError` for a recipe that reads shifted
        rows in training, or adapts while it predicts: `farshift run` trains these."""
        try:
            from .training.replica_group import ReplicaGroup
            from .training.training_rows import Member
        except ImportError as error:
            raise MissingExtra("a baseline", "train") from error

        if needed := {"unlabelled", "ood_val", "test batches"} & set(list_required_data(recipe)):
            raise ModelError(f"{recipe.name} needs {', '.join(needed)} of shifted rows: train it with farshift run")
        self.member = Member(seed, settings)
        self.group = ReplicaGroup(recipe, task, [self.member], benchmark)
        self.name = self.group.make_name(self.member)
        self._fitted: Replica | Estimator | None = None

    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> dict[str, Any]:
        """Train from scratch on `train`. `val` is read only if the recipe stops early or its algorithm requires it.

        Takes `budget.steps` steps if given, else the recipe's for `budget.name`. Returns information on the fit: final
        loss, steps and parameters of a network; rows fitted of an estimator.
        """
        from .training.training_rows import FitInput

        self._fitted = self.group.fit(FitInput(train, val), budget).replica(self.member)
        return self._fitted.remarks

    @property
    def _trained(self) -> Replica | Estimator:
        if self._fitted is None:
            raise ModelError(f"{self.name}: call fit before predict")
        return self._fitted

    def checkpoints(self) -> Iterator[tuple[str, Replica | Estimator]]:
        """The trained model at each checkpoint that the recipe saves, by name; the final one is last."""
        return self._trained.checkpoints()

    def predict(self, batch: Columns) -> Answers | list[str]:
        """One class with its probabilities, or one text, for each row of `batch`, in its order."""
        return self._trained.predict(batch)
