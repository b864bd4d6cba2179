"""A model under test: made, trained and queried as by the harness, on a few rows."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_below, draw_uniform
from ...loaders.batching.input_format import InputFormat
from ..answers import Answers
from ..model import Budget, Columns, Model, Task
from ..model_inputs.rows import ModelRows
from ..parsing import BatchLocation, read_answer, wrap_user_errors
from .factory import make_factory

if TYPE_CHECKING:
    from ..prompting.prompt import Prompt

ROWS = 64

BUDGET = Budget("quick", steps=3)
"""Enough to execute a `fit`; nothing has to be learned."""

TOLERANCE = 1e-3
"""How much a probability, or a number relative to its size, may differ between batches."""

TASKS = (
    Task("classification", ("a", "b"), "label", classes=5),
    Task("classification", ("pixels",), "label", classes=3),
    Task("regression", ("x", "y"), "target"),
    Task("sequence", ("text",), "answer"),
)
"""Small tasks of each type, for a model whose task is not given."""

_WORDS = {"whitespace": ("walk", "look", "run", "jump", "left", "right", "twice", "and"), "character": ("0", "1")}
_BLANK = {"whitespace": " ", "character": ""}

Rows = NDArray[np.int64] | slice
ALL = slice(None)


def make_columns(task: Task, rows: int = ROWS) -> dict[str, NDArray[Any]]:
    """Return rows for a task, inputs and label, drawn at random by the names of the columns.

    Inputs are texts of 1 to 9 tokens for sequence tasks, numbers in [0, 1) for regression, and for classification
    whole numbers in [0, classes) or, for an input called `pixels`, uint8[8,8] images. For labels see `make_labels`.
    """
    inputs = {name: _make_input(task, name, rows) for name in task.inputs}
    return inputs | {task.label: make_labels(task, inputs)}


def make_labels(task: Task, inputs: Columns) -> NDArray[Any]:
    """Return a label for each row, shape (n,): the first input's tokens reversed, or a random number or class."""
    first = inputs[task.inputs[0]]
    numbers = np.arange(len(first), dtype=np.uint64)
    if task.type == "sequence":
        return _reverse_texts(first, task)
    if task.type == "regression":
        return draw_uniform(f"conformance/{task.label}", numbers)
    if task.type == "detection":
        return _to_object_array(
            f"{at} {at} {at + 8} {at + 8}" for at in draw_below(f"conformance/{task.label}", numbers, 24).tolist()
        )
    if task.type == "multilabel":
        labels = np.arange(len(first) * (task.classes or 0), dtype=np.uint64).reshape(len(first), -1)
        return draw_below(f"conformance/{task.label}", labels, 2).astype(np.float32)
    return draw_below(f"conformance/{task.label}", numbers, task.classes or 1)


def change_labels(task: Task, label: NDArray[Any]) -> NDArray[Any]:
    """Return another valid label for each row, shape (n,); only a palindrome keeps its text."""
    if task.type == "sequence":
        return _reverse_texts(label, task)
    if task.type == "detection":
        return _to_object_array("" for _ in label)
    if task.type == "multilabel":
        return 1 - label
    return -label if task.type == "regression" else (label + 1) % (task.classes or 1)


def _reverse_texts(texts: NDArray[Any], task: Task) -> NDArray[Any]:
    blank = _BLANK[task.tokens]
    return _to_object_array(blank.join(reversed(str(text).split() if blank else str(text))) for text in texts)


def _make_input(task: Task, name: str, rows: int) -> NDArray[Any]:
    stream, numbers = f"conformance/{name}", np.arange(rows, dtype=np.uint64)
    if task.type == "sequence":
        words = _WORDS[task.tokens]
        lengths = draw_below(f"{stream}/length", numbers, 9) + 1
        drawn = draw_below(stream, np.arange(rows * 9, dtype=np.uint64), len(words)).reshape(rows, 9)
        each = zip(drawn, lengths, strict=True)
        return _to_object_array(_BLANK[task.tokens].join(words[word] for word in row[:length]) for row, length in each)
    if task.type == "regression":
        return draw_uniform(stream, numbers)
    if name == "pixels":
        return draw_below(stream, np.arange(rows * 64, dtype=np.uint64), 256).astype(np.uint8).reshape(rows, 8, 8)
    return draw_below(stream, numbers, task.classes or 1)


def _to_object_array(texts: Iterable[str]) -> NDArray[Any]:
    return np.array(list(texts), object)


@dataclass
class CheckedModel:
    """A user's model on one task. `columns` has the inputs, n rows each, and optionally label and weight."""

    given: Any
    task: Task
    columns: Columns
    seed: int = 0
    prompt: Prompt | None = None

    def __len__(self) -> int:
        return len(self.columns[self.task.inputs[0]])

    @property
    def row_ids(self) -> NDArray[np.uint64]:
        return np.arange(len(self), dtype=np.uint64)

    def make(self) -> Model:
        """Make a new model."""
        with wrap_user_errors("the model's factory"):
            return make_factory(self.given, self.task, prompt=self.prompt)(self.seed, {})

    def train(self) -> ModelRows:
        """Copy the training rows: the checked rows, with their label or a random one."""
        drawn = {self.task.label: make_labels(self.task, self.columns), "weight": np.ones(len(self), np.int64)}
        names = (*self.task.inputs, *drawn)
        given = {name: np.array(self.columns[name]) for name in names if name in self.columns}
        return ModelRows(drawn | given, self.row_ids, "conformance")

    def fit(self, model: Model, train: ModelRows) -> None:
        """Train a model if it has `fit`."""
        fit = getattr(model, "fit", None)
        if fit is None:
            return
        with wrap_user_errors("fit(train, None, budget)"):
            takes = inspect.signature(fit).parameters
            train = replace(train, forms=InputFormat.of(model))
            fit(train, None, BUDGET, **{name: None for name in ("ood_val", "unlabelled") if name in takes})

    def train_model(self) -> Model:
        """Make and train a new model."""
        model = self.make()
        self.fit(model, self.train())
        return model

    def batch(self, rows: Rows = ALL) -> dict[str, NDArray[Any]]:
        """Copy some rows' inputs."""
        return {name: np.array(self.columns[name][rows]) for name in self.task.inputs}

    def ask(self, model: Model, rows: Rows = ALL) -> Answers:
        """Return a model's predictions for some rows, checked against the task; `ModelError` says what is wrong."""
        return read_answer(self.predict(model, self.make_batch(model, rows), rows), self._locate_rows(rows), self.task)

    def make_batch(self, model: Model, rows: Rows = ALL) -> Columns:
        """Copy some rows' inputs in the format that the model requests."""
        with wrap_user_errors(f"predict on {self._locate_rows(rows)}"):
            return InputFormat.of(model).given(self.batch(rows))

    def predict(self, model: Model, batch: Columns, rows: Rows = ALL) -> Any:
        """Return a model's unchecked output for a batch of `make_batch`."""
        with wrap_user_errors(f"predict on {self._locate_rows(rows)}"):
            return model.predict(batch)

    def _locate_rows(self, rows: Rows) -> BatchLocation:
        return BatchLocation("the checked rows", 0, self.row_ids[rows])

    @cached_property
    def shared_model(self) -> Model:
        """One trained model, shared by the checks that only predict."""
        return self.train_model()

    @cached_property
    def answers(self) -> Answers:
        """The first predictions of `shared_model` for all rows in one batch."""
        return self.ask(self.shared_model)

    def find_changed_rows(self, rows: Rows = ALL, model: Model | None = None) -> NDArray[np.int64]:
        """Return the rows whose predictions differ from `answers` if a model (default `shared_model`) predicts `rows`
        only."""
        first = self.answers[rows]
        answers = self.ask(self.shared_model if model is None else model, rows)
        return np.arange(len(self))[rows][find_differences(first, answers, self.task)]


def find_differences(left: Answers, right: Answers, task: Task) -> NDArray[np.bool_]:
    """Return which rows have different predictions, shape (n,), apart from rounding: probabilities and numbers may
    differ by `TOLERANCE`, and classes may differ if the two are that close to equally probable."""
    if task.type == "regression":
        unequal = ~np.isclose(left.prediction, right.prediction, rtol=TOLERANCE, atol=1e-6)
    else:
        unequal = left.prediction != right.prediction
    if task.type == "multilabel" and left.scores is not None and right.scores is not None:
        unequal = ~np.isclose(left.scores, right.scores, rtol=TOLERANCE, atol=TOLERANCE).all(axis=1)
    elif left.scores is not None and right.scores is not None:
        moved = abs(left.scores - right.scores).max(axis=1) > TOLERANCE
        unequal = moved | (unequal & (compute_shortfall(left.scores, right.prediction) > TOLERANCE))
    different: NDArray[np.bool_] = (left.status != right.status) | (left.answered & unequal)
    return different


def compute_shortfall(scores: NDArray[np.float32], classes: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return how much less probable each row's class is than its most probable one, shape (n,)."""
    gap: NDArray[np.float32] = scores.max(axis=1) - np.take_along_axis(scores, classes[:, None], axis=1)[:, 0]
    return gap
