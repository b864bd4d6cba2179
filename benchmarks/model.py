"""What the harness asks of a model: `predict`, and optionally `fit`. Any object that fits works, no base class."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Task:
    """What is to be predicted from what.

    `classification`: `label` is an integer column in [0, classes); predictions are integers, shape (n,).
    `sequence`: `label` is a text column; predictions are n texts, compared token by token.
    """

    type: Literal["classification", "sequence"]
    inputs: tuple[str, ...]
    label: str
    classes: int | None = None
    tokens: Literal["whitespace", "character"] = "whitespace"
    aligned: bool = False
    """Sequence tasks: the i-th output token belongs to the i-th input token."""


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
    def predict(self, batch: Columns) -> NDArray[Any] | Sequence[Any]:
        """Predictions for a batch of inputs: one per row, in the batch's order.

        `batch` maps each input field of the task to an array whose first axis is the row; text is an object
        array of `str`. Labels are never in it.
        """
        ...


@runtime_checkable
class TrainableModel(Model, Protocol):
    def fit(self, train: TrainingRows, val: TrainingRows | None, budget: Budget) -> object:
        """Train from scratch. Called once per seed, on a fresh object, before any `predict`.

        May return a dictionary of remarks (steps done, final loss): numbers and short texts go on the run card.
        """
        ...
