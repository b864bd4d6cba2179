"""A baseline: a recipe made into a model that the harness can train and ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from ..benchmarks.answers import Answers
from ..benchmarks.model import Budget, Columns, Model, Task, TrainingRows
from ..core.errors import MissingExtra, ModelError
from ..core.plugins import module, module_file
from .recipe import Recipe, literal

if TYPE_CHECKING:
    from .training.replica_group import Fit, ReplicaGroup
    from .training.training_rows import Member

NONE: Mapping[str, Any] = MappingProxyType({})


def touches(recipe: Recipe) -> tuple[str, ...]:
    """What data a recipe looks at: names of `algorithm.TOUCHABLE`."""
    if recipe.algorithm is None:
        return ("train",)
    found: tuple[str, ...] = literal(module_file("baselines/algorithms", recipe.algorithm, "algorithm"), "TOUCHES")
    stops = recipe.settings.get("check_every") and recipe.settings.get("patience")
    return (*found, "id_val") if stops and "id_val" not in found else found


def check_task(recipe: Recipe, task: Task) -> None:
    """Refuse a recipe that cannot do a task, before anything is spent."""
    if recipe.estimator:
        sorts = ("classification", "sequence") if recipe.whole_answers else ("classification",)
        if task.type not in sorts:
            raise ModelError(f"{recipe.name} is for {' and '.join(sorts)} tasks, and this is a {task.type} task")
        return
    assert recipe.network
    assert recipe.algorithm
    sort = module("baselines/networks", recipe.network, "network").TASK
    if sort not in (task.type, "aligned") or (sort == "aligned" and not task.aligned):
        raise ModelError(
            f"{recipe.name}: the network {recipe.network} is for {sort} tasks, and this is a {task.type} task"
        )
    tasks = literal(module_file("baselines/algorithms", recipe.algorithm, "algorithm"), "TASKS")
    if task.type not in tasks:
        raise ModelError(
            f"{recipe.name}: the algorithm {recipe.algorithm} is for {' and '.join(tasks)} tasks, "
            f"and this is a {task.type} task"
        )


class Baseline:
    """A recipe on one benchmark with one seed. A `TrainableModel`: `fit` once, then `predict`."""

    def __init__(
        self,
        recipe: Recipe,
        task: Task,
        seed: int,
        benchmark: str,
        settings: Mapping[str, Any] = NONE,
        replica_group: ReplicaGroup | None = None,
    ) -> None:
        """settings: in which this replica differs from its recipe. replica group: those that it is trained with; by
        default it is alone."""
        try:
            from .training.replica_group import ReplicaGroup
            from .training.training_rows import Member
        except ImportError as error:
            raise MissingExtra("a baseline", "train") from error

        self.member = Member(seed, settings)
        self.replica_group = replica_group or ReplicaGroup(recipe, task, [self.member], benchmark)
        self.name = self.replica_group.name(self.member)
        self._fit: Fit | None = None

    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> dict[str, Any]:
        """Train from scratch on `train`, together with the replica group. `val` is looked at where the recipe stops
        early, or its algorithm says so.

        Steps are `budget.steps` if given, else the recipe's for `budget.name`. Returns remarks: final loss,
        steps and parameters of a network; rows fitted of an estimator.
        """
        return self._fitted(train, val, budget)

    def _fitted(self, train: TrainingRows, val: TrainingRows | None, budget: Budget, **more: Any) -> dict[str, Any]:
        from .training.training_rows import Rows

        self._fit = self.replica_group.fit(Rows(train, val, **more), budget)
        return self._fit.remarks(self.member)

    def checkpoints(self) -> Iterator[tuple[str, Model]]:
        """The states that the recipe keeps, by name, the last one final."""
        for name in self._known.candidates(self.member):
            yield name, Checkpoint(self._known, self.member, name)

    @property
    def _known(self) -> Fit:
        if self._fit is None:
            raise ModelError(f"{self.name}: fit it before it predicts")
        return self._fit

    def predict(self, batch: Columns) -> Answers | list[str]:
        """One class with its probabilities, or one text, for each row of `batch`, in its order."""
        return self._known.predict(self.member, batch)


class Checkpoint:
    """A trained replica at one of its states."""

    def __init__(self, fit: Fit, member: Member, candidate: str) -> None:
        self.fitted, self.member, self.candidate = fit, member, candidate

    def predict(self, batch: Columns) -> Answers | list[str]:
        return self.fitted.predict(self.member, batch, self.candidate)


class AdaptiveCheckpoint(Checkpoint):
    """One that learns from what it is asked."""

    def reset(self) -> None:
        self.fitted.reset(self.member, self.candidate)


class Transductive(Baseline):
    """A baseline that trains on the inputs of shifted test rows too: the harness gives what `fit` names."""

    def fit(
        self, train: TrainingRows, val: TrainingRows | None, budget: Budget, unlabelled: Columns | None = None
    ) -> dict[str, Any]:
        return self._fitted(train, val, budget, unlabelled=unlabelled)


class Shifted(Baseline):
    """A baseline that looks at labels of shifted validation rows."""

    def fit(
        self, train: TrainingRows, val: TrainingRows | None, budget: Budget, ood_val: TrainingRows | None = None
    ) -> dict[str, Any]:
        return self._fitted(train, val, budget, ood_val=ood_val)


class Adaptive(Baseline):
    """A baseline that changes while it predicts."""

    def checkpoints(self) -> Iterator[tuple[str, Model]]:
        for name in self._known.candidates(self.member):
            yield name, AdaptiveCheckpoint(self._known, self.member, name)

    def reset(self) -> None:
        """Forget what was adapted since `fit`."""
        self._known.reset(self.member, "last")


def baseline(
    recipe: Recipe,
    task: Task,
    seed: int,
    benchmark: str,
    settings: Mapping[str, Any] = NONE,
    replica_group: ReplicaGroup | None = None,
) -> Baseline:
    """The baseline of a recipe, with the methods that the data it looks at ask for."""
    kinds: dict[str, type[Baseline]] = {"unlabelled": Transductive, "ood_val": Shifted, "test batches": Adaptive}
    needed = [kinds[name] for name in touches(recipe) if name in kinds]
    if len(needed) > 1:
        raise ModelError(f"{recipe.name}: no baseline looks at more than one of {', '.join(kinds)}")
    return (needed or [Baseline])[0](recipe, task, seed, benchmark, settings, replica_group)
