"""How the models of a run are trained: one at a time, as users' models, or many together, as replicas.

A `Trainer` receives a set of rows and a budget, and returns the trained models. The evaluation loop (`loop.py`) treats
both kinds in the same way.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ...core.clock import Stopwatch, format_duration
from ...core.errors import ModelError
from ...core.progress import repeat_message
from ...loaders.batching.input_format import AS_THEY_ARE, InputFormat
from ..benchmark import Benchmark
from ..model import Budget
from ..model_inputs.rows import ModelInputs, ModelRows, copy_rows
from ..parsing import wrap_user_errors
from ..selection import Fold
from ..settings import clean_remarks
from .factory import Factory


@dataclass(frozen=True)
class TrainingSet:
    """The rows of one training: the benchmark's training rows, or those of a fold of a selection rule. They are read
    on demand."""

    benchmark: Benchmark
    model_inputs: ModelInputs
    fold: Fold | None = None
    forms: InputFormat = AS_THEY_ARE
    """The format in which images and audio are returned."""

    def train(self) -> ModelRows:
        return self._part("train") if self.fold is None else replace(self.fold.train, forms=self.forms)

    def val(self) -> ModelRows | None:
        """Return validation rows; None if the benchmark has none, and for a fold."""
        return self._part("id_val") if self.fold is None and self.model_inputs.has_part("id_val") else None

    def _part(self, name: str) -> ModelRows:
        return replace(self.model_inputs.training(name), forms=self.forms)

    def opened(self, takes: Callable[[str], bool]) -> dict[str, Any]:
        """Return what a training requests by name beyond training and validation rows, `ood_val` and `unlabelled`: the
        data where the protocol permits them, else None."""
        touch = self.benchmark.definition.protocol.touch
        opened: dict[str, Any] = {}
        if takes("ood_val"):
            given = touch.ood_val_labels and self.model_inputs.has_part("ood_val")
            opened["ood_val"] = self._part("ood_val") if given else None
        if takes("unlabelled"):
            opened["unlabelled"] = self.model_inputs.unlabelled("ood_test") if touch.ood_test_inputs else None
        return opened


@dataclass(frozen=True)
class FittedModel:
    """A trained model, and facts about its training."""

    model: Any
    remarks: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    """Seconds of its training; its share if trained with others. None for a model that is not trained here."""
    touched: Sequence[str] = ()
    """Additional data that the protocol permits and the training used, by name."""


class TrainedModels(Protocol):
    """The models of some seeds and settings, trained on one set of rows."""

    def trained(self, seed: int, values: Mapping[str, Any]) -> AbstractContextManager[FittedModel]:
        """Open the model of a seed and a setting's values within the context. `ModelError` if its training
        failed."""


Trainer = Callable[[TrainingSet, Budget], TrainedModels]


@dataclass(frozen=True)
class SequentialTrainer:
    """Models of a factory: each is made, trained if it has `fit`, and closed before the next one."""

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
                opened["unlabelled"] = rows.forms.given(
                    {name: copy_rows(column, slice(None)) for name, column in opened["unlabelled"].items()}
                )
            with repeat_message(lambda seconds: f"{where}: fit has run for {format_duration(seconds)}"):
                remarks = clean_remarks(model.fit(rows.train(), rows.val(), self.budget, **opened))
        return FittedModel(model, remarks, watch.seconds(), list_used_data(opened))


def list_used_data(opened: Mapping[str, Any]) -> list[str]:
    """List the additional data that a training used."""
    return [name for name, value in opened.items() if value is not None]


def check_adaptation(model: Any, benchmark: Benchmark) -> None:
    """Raise `ModelError` for a model that adapts at test time if the protocol does not permit it."""
    if getattr(model, "reset", None) is not None and benchmark.definition.protocol.touch.adaptation is None:
        raise ModelError(
            f"the model {type(model).__name__} has reset(), so it adapts at test time, and the protocol of "
            f"{benchmark.name} does not permit that: remove reset(), or choose a benchmark that permits it"
        )


@contextmanager
def _close_after_use(model: Any, what: str) -> Iterator[None]:
    """Close a model that can be closed; an earlier error takes precedence over one from closing."""
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
