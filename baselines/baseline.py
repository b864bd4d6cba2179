"""A baseline: a recipe as a model that the harness can train and evaluate."""

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
    from ..loaders.batching.encoded import EncodedFiles
    from .training.trained_group import Replica

NONE: Mapping[str, Any] = MappingProxyType({})


class Baseline:
    """A recipe on one benchmark with one seed. A `TrainableModel`: `fit` once, then `predict`."""

    def __init__(
        self, recipe: Recipe, task: Task, seed: int, benchmark: str, settings: Mapping[str, Any] = NONE
    ) -> None:
        """settings: values of this replica that differ from its recipe's."""
        try:
            from .training.replica_group import ReplicaGroup
            from .training.trained_group import make_replica_name
            from .training.training_rows import Member
        except ImportError as error:
            raise MissingExtra("a baseline", "train") from error

        self.member = Member(seed, settings)
        self.group = ReplicaGroup(recipe, task, [self.member], benchmark)
        self.name = make_replica_name(recipe, benchmark, self.member)
        self._replica: Replica | None = None

    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> dict[str, Any]:
        """Train from scratch on `train`. `val` is read only if the recipe stops early or its algorithm requires it.

        Takes `budget.steps` steps if given, else the recipe's for `budget.name`. Returns information on the fit: final
        loss, steps and parameters of a network; rows fitted of an estimator.
        """
        return self._fit(train, val, budget)

    def _fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget, **more: Any) -> dict[str, Any]:
        from .training.training_rows import FitInput

        trained = self.group.fit(FitInput(train, val, **more), budget)
        self._replica = trained.replica(self.member)
        return trained.remarks(self.member)

    @property
    def _fitted(self) -> Replica:
        if self._replica is None:
            raise ModelError(f"{self.name}: call fit before predict")
        return self._replica

    def checkpoints(self) -> Iterator[tuple[str, Replica]]:
        """The trained replica at each checkpoint that the recipe saves, by name; the final one is last."""
        return self._fitted.checkpoints()

    def farshift_announce(self, columns: Mapping[str, EncodedFiles]) -> None:
        """Decode the images of a part before its batches are predicted (`harness/predictor.py`)."""
        self._fitted.farshift_announce(columns)

    def predict(self, batch: Columns) -> Answers | list[str]:
        """One class with its probabilities, or one text, for each row of `batch`, in its order."""
        return self._fitted.predict(batch)


class TransductiveBaseline(Baseline):
    """A baseline that also trains on the inputs of shifted test rows, which the harness passes as `unlabelled`."""

    def fit(
        self, train: TrainingRows, val: TrainingRows | None, budget: Budget, unlabelled: Columns | None = None
    ) -> dict[str, Any]:
        return self._fit(train, val, budget, unlabelled=unlabelled)


class ShiftedLabelBaseline(Baseline):
    """A baseline that reads the labels of shifted validation rows."""

    def fit(
        self, train: TrainingRows, val: TrainingRows | None, budget: Budget, ood_val: TrainingRows | None = None
    ) -> dict[str, Any]:
        return self._fit(train, val, budget, ood_val=ood_val)


class AdaptiveBaseline(Baseline):
    """A baseline that adapts while it predicts."""

    def reset(self) -> None:
        """Undo the adaptation since `fit`."""
        self._fitted.group.reset(self.member, "last")


def make_baseline(
    recipe: Recipe, task: Task, seed: int, benchmark: str, settings: Mapping[str, Any] = NONE
) -> Baseline:
    """Make the baseline of a recipe, of the class that fits the data which the recipe requires."""
    kinds: dict[str, type[Baseline]] = {
        "unlabelled": TransductiveBaseline,
        "ood_val": ShiftedLabelBaseline,
        "test batches": AdaptiveBaseline,
    }
    needed = [kinds[name] for name in list_required_data(recipe) if name in kinds]
    if len(needed) > 1:
        raise ModelError(f"{recipe.name}: a baseline can require at most one of {', '.join(kinds)}")
    return (needed or [Baseline])[0](recipe, task, seed, benchmark, settings)
