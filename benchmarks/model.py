"""What the harness asks of a model: `predict`, and optionally `fit`. Any object that fits works, no base class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """What is to be predicted from what.

    `classification`: `label` is an integer column in [0, classes); predictions are integers, shape (n,).
    `multilabel`: `label` is a tensor column of `classes` labels, 1, 0, or NaN where it is not known; predictions are a
      finite score for each, shape (n, classes), higher where 1 is likelier.
    `sequence`: `label` is a text column; predictions are n texts, compared token by token.
    `detection`: `label` is a text column of boxes, "x0 y0 x1 y1;.." (boxes.py); predictions are boxes with scores.
    `regression`: `label` is a numeric column; predictions are finite floats, shape (n,).
    """

    type: Literal["classification", "multilabel", "sequence", "detection", "regression"]
    inputs: tuple[str, ...]
    label: str
    classes: int | None = None
    tokens: Literal["whitespace", "character"] = "whitespace"
    aligned: bool = False
    """Sequence tasks: the i-th output token belongs to the i-th input token."""
    names: tuple[str, ...] = ()
    """Classification: what the classes are called, in their order, where they have names."""
    categories: tuple[str, ...] = ()
    """Inputs whose integers are codes without an order; other integers are numbers."""

    @property
    def in_text(self) -> bool:
        """Whether predictions are stored as texts."""
        return self.type in ("sequence", "detection")


@dataclass(frozen=True)
class Budget:
    """What training may spend. `steps` overrides a model's own number of steps where given."""

    name: str = "full"
    steps: int | None = None
    device: str = "cpu"


class TrainingRows(Protocol):
    """The rows a model may train on: inputs, the label as given (never the hidden truth), and `weight`."""

    def numpy(self) -> dict[str, NDArray[Any]]: ...

    def batches(
        self, batch_size: int, seed: int | None = None, epoch: int = 0, drop_last: bool = False
    ) -> Iterator[dict[str, NDArray[Any]]]: ...

    def __len__(self) -> int: ...


@runtime_checkable
class Model(Protocol):
    def predict(self, batch: Columns) -> Any:
        """Predictions for a batch of inputs: one per row, in the batch's order.

        `batch` maps each input field of the task to an array whose first axis is the row; text is an object
        array of `str`. Labels are never in it. The answer is an array or list of n classes, numbers or texts; for
        classification also probabilities, shape (n, classes); or `Answers`. In a list, None is a row left open and
        `Failed(reason)` a row that no answer could be had for.
        """
        ...


@runtime_checkable
class TrainableModel(Model, Protocol):
    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> object:
        """Train from scratch. Called once per seed and setting, on a fresh object, before any `predict`.

        A `fit` that takes `ood_val` or `unlabelled` by name gets labelled shifted validation rows, or the inputs of the
        shifted test rows (a dictionary of arrays), where the benchmark's protocol opens them, and None elsewhere.

        May return a dictionary of remarks (steps done, final loss): numbers and short texts go on the run card. `steps`
        and `epochs` may not exceed the protocol's ceiling.
        """
        ...


@runtime_checkable
class CheckpointedModel(TrainableModel, Protocol):
    def checkpoints(self) -> Iterable[tuple[str, Model]]:
        """After `fit`: named states of the model, in the order of training, the last one final. Each is asked for all
        parts before the next is drawn, so one object may load them one after the other. Every seed has the same
        names."""
        ...


@runtime_checkable
class AdaptiveModel(Model, Protocol):
    """A model that changes while it predicts (test-time adaptation). Taken only by a benchmark whose protocol allows
    it; the harness fixes the batches and their order."""

    def reset(self) -> None:
        """Forget what was adapted since `fit`."""
        ...


@runtime_checkable
class RemarkingModel(Model, Protocol):
    def remarks(self) -> Mapping[str, Any]:
        """After everything was asked: numbers and short texts for the run card (tokens spent, answers not readable)."""
        ...
