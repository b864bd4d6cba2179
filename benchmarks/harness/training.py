"""How the models of a run are trained: one at a time, as a user's own are, or many together, as replicas are.

A `Trainer` takes a set of rows and a budget, and gives the models trained on them. The evaluation loop (`loop.py`)
asks each one: whether it was trained alone or among others makes no difference there.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ...core.clock import Stopwatch
from ...core.errors import ModelError
from ...loaders.batching.input_format import AS_THEY_ARE, InputFormat
from ..benchmark import Benchmark
from ..blind.rows import ModelInputs
from ..blind.training_table import TrainingTable, copy_to_memory
from ..model import Budget
from ..parsing import wrap_user_errors
from ..selection import Fold
from ..settings import clean_remarks
from .factory import Factory


@dataclass(frozen=True)
class TrainingSet:
    """The rows of one training: the benchmark's training rows, or those of a fold of a selection rule. They are read
    when they are asked for."""

    benchmark: Benchmark
    blind: ModelInputs
    fold: Fold | None = None
    forms: InputFormat = AS_THEY_ARE
    """In what form pictures and sounds are given."""

    def train(self) -> TrainingTable:
        return self._part("train") if self.fold is None else replace(self.fold.train, forms=self.forms)

    def val(self) -> TrainingTable | None:
        """Validation rows; None where the benchmark has none, and for a fold."""
        return self._part("id_val") if self.fold is None and self.blind.has_part("id_val") else None

    def _part(self, name: str) -> TrainingTable:
        return replace(self.blind.training(name), forms=self.forms)

    def opened(self, takes: Callable[[str], bool]) -> dict[str, Any]:
        """What a training takes by name beyond training and validation rows, `ood_val` and `unlabelled`: given where
        the protocol opens it, None where it does not."""
        touch = self.benchmark.definition.protocol.touch
        opened: dict[str, Any] = {}
        if takes("ood_val"):
            given = touch.ood_val_labels and self.blind.has_part("ood_val")
            opened["ood_val"] = self._part("ood_val") if given else None
        if takes("unlabelled"):
            opened["unlabelled"] = self.blind.unlabelled("ood_test") if touch.ood_test_inputs else None
        return opened


@dataclass(frozen=True)
class FittedModel:
    """A model that can be asked, and what its training came to."""

    model: Any
    remarks: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    """Of its training; its share where it was trained with others. None for a model that is not trained here."""
    touched: Sequence[str] = ()
    """What the protocol opens and the training took, by name."""


class TrainedModels(Protocol):
    """The models of some seeds and settings, trained on one set of rows."""

    def trained(self, seed: int, values: Mapping[str, Any]) -> AbstractContextManager[FittedModel]:
        """The model of a seed and a setting's values, open while the context lasts. `ModelError` where its training
        failed."""


Trainer = Callable[[TrainingSet, Budget], TrainedModels]


@dataclass(frozen=True)
class SequentialTrainer:
    """Models that a factory makes: each is made, trained if it has `fit`, and closed before the next one."""

    make: Factory
    rows: TrainingSet
    budget: Budget

    @contextmanager
    def trained(self, seed: int, values: Mapping[str, Any]) -> Iterator[FittedModel]:
        where = f"{self.rows.benchmark.name}, seed {seed}"
        with wrap_user_errors(f"{where}: the model's factory"):
            model = self.make(seed, values)
        with _close_after_use(model, f"{where}: close"):
            check_adaptation(model, self.rows.benchmark)
            yield self._fit(model, where) if getattr(model, "fit", None) is not None else FittedModel(model)

    def _fit(self, model: Any, where: str) -> FittedModel:
        watch = Stopwatch()
        with wrap_user_errors(f"{where}: fit"):
            rows = replace(self.rows, forms=InputFormat.of(model))
            opened = rows.opened(inspect.signature(model.fit).parameters.__contains__)
            if opened.get("unlabelled") is not None:
                opened["unlabelled"] = rows.forms.given(copy_to_memory(opened["unlabelled"]))
            remarks = clean_remarks(model.fit(rows.train(), rows.val(), self.budget, **opened))
        return FittedModel(model, remarks, watch.seconds(), list_used_data(opened))


def make_sequential_trainer(make: Factory) -> Trainer:
    """A trainer of the models that a factory makes."""
    return lambda rows, budget: SequentialTrainer(make, rows, budget)


def list_used_data(opened: Mapping[str, Any]) -> list[str]:
    """What a training took of what it asked for by name."""
    return [name for name, value in opened.items() if value is not None]


def check_adaptation(model: Any, benchmark: Benchmark) -> None:
    """`ModelError` for a model that adapts while it is asked, where the protocol does not allow it."""
    if getattr(model, "reset", None) is not None and benchmark.definition.protocol.touch.adaptation is None:
        raise ModelError(
            f"the model {type(model).__name__} has reset(), so it adapts at test time, and the protocol of "
            f"{benchmark.name} does not allow that: evaluate it without, or on a benchmark that does"
        )


@contextmanager
def _close_after_use(model: Any, what: str) -> Iterator[None]:
    """Close a model that can be closed; an error before it says more than one from closing."""
    close = getattr(model, "close", None)
    try:
        yield
    except BaseException:
        if callable(close):
            with suppress(Exception):
                close()
        raise
    if callable(close):
        with wrap_user_errors(what):
            close()
