"""The model interface: `predict`, and optionally `fit`. Any object with them works, without a base class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """The task: its inputs, its label and their types.

    `classification`: `label` is an integer column in [0, classes); predictions are integers, shape (n,). `multilabel`:
    `label` is a tensor column of `classes` labels, 1, 0, or NaN if unknown; predictions are a finite score
      for each, shape (n, classes), higher if 1 is more likely.
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
    """Classification: the names of the classes in order, if they have names."""
    categories: tuple[str, ...] = ()
    """Inputs whose integers are codes without an order; other integers are numbers."""

    @property
    def in_text(self) -> bool:
        """Whether predictions are stored as texts."""
        return self.type in ("sequence", "detection")


@dataclass(frozen=True)
class Budget:
    """The training budget. `steps`, if given, overrides a model's own number of steps."""

    name: str = "full"
    steps: int | None = None
    device: str = "cpu"


class TrainingRows(Protocol):
    """Training rows: inputs, the observed label (never the hidden true one), and `weight`."""

    def numpy(self) -> dict[str, NDArray[Any]]: ...

    def batches(
        self, batch_size: int, seed: int | None = None, epoch: int = 0, drop_last: bool = False
    ) -> Iterator[dict[str, NDArray[Any]]]: ...

    def __len__(self) -> int: ...


@runtime_checkable
class Model(Protocol):
    def predict(self, batch: Columns) -> Any:
        """Return predictions for a batch of inputs: one per row, in the batch's order.

        `batch` maps each input field of the task to an array whose first axis is the row; text is an object array of
        `str`. It has no labels. The result is an array or list of n classes, numbers or texts; for classification also
        probabilities, shape (n, classes); or `Answers`. In a list, None means that the model abstains from a row, and
        `Failed(reason)` that no prediction could be made for it.
        """
        ...


class TrainableModel(Model, Protocol):
    """A model with `fit`. Three other methods are optional:

    `checkpoints()` yields, after `fit`, pairs of a name and a model: named states in the order of training, the last
      one final. Each predicts all parts before the next is requested, so one object may load them one after the other.
      The names must be the same for every seed.
    `reset()` restores the state after `fit` of a model that changes while it predicts (test-time adaptation): only for
      a benchmark whose protocol allows it; the harness fixes the batches and their order.
    `remarks()` returns, after all predictions, numbers and short texts for the run card (tokens used, unparsable
      answers).
    """

    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> object:
        """Train from scratch. Called once per seed and setting, on a new object, before any `predict`.

        A `fit` with an argument `ood_val` or `unlabelled` receives labelled shifted validation rows, or the inputs of
        the shifted test rows (a dictionary of arrays), if the benchmark's protocol permits them, else None.

        May return a dictionary of remarks (steps done, final loss): numbers and short texts are added to the run card.
        `steps` and `epochs` must not exceed the protocol's ceiling.
        """
        ...
