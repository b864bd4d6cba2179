"""Checks that a model fulfils its contract, on which the meaning of its scores depends; for authors of models.

    from farshift.benchmarks.harness.conformance import check_model, checks

    check_model(MyModel, benchmark)  # ModelError lists every problem

    @pytest.mark.parametrize(("name", "check"), checks(MyModel, benchmark))
    def test_my_model(name, check):
        check()

A model is anything that `evaluate` accepts: an object, an estimator, a module, a function, or a factory. It may abstain
from rows (`None`) or fail on them (`Failed`), return probabilities or not, and print anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import FarshiftError, ModelError
from ...loaders.batching.input_format import InputFormat
from ..answers import TOLERANCE, Answers, compute_shortfall, find_differences
from ..benchmark import Benchmark, find_benchmark
from ..model import Budget, Columns, Model, Task
from ..model_inputs.load import load_model_inputs
from ..model_inputs.rows import ModelRows
from ..parsing import BatchLocation, read_answer, wrap_user_errors
from .factory import get_model_name, make_factory

if TYPE_CHECKING:
    from ..prompting.prompt import Prompt

ROWS = 64

BUDGET = Budget("quick", steps=3)
"""Enough to execute a `fit`; nothing has to be learned."""

Subject = str | Benchmark | Task
Rows = NDArray[np.int64] | slice
ALL = slice(None)


def check_model(
    model: Any, task: Subject, *, seed: int = 0, batch: Columns | None = None, prompt: Prompt | None = None
) -> None:
    """Check a model against its contract; `ModelError` lists all problems, one per line.

    task: a benchmark or its name, of which 64 training rows and the prompt are used; or a task alone, with a batch.
    batch: the rows to predict, by input, first axis the row. A model with `fit` is trained on the same rows, and needs
      their label among the columns. For prediction a model receives the inputs only.
    prompt: the prompt for a language model.

    >>> import farshift as fs
    >>> fs.check_model(fs.predictor(lambda batch: (batch["a"] + batch["b"]) % 97), "modadd97/xi35")
    """
    problems: list[str] = []
    for _, check in checks(model, task, seed=seed, batch=batch, prompt=prompt):
        try:
            check()
        except ModelError as error:
            problems.append(str(error))
    if problems:
        lines = [f"{get_model_name(model)} does not fulfil the contract of a model:", *dict.fromkeys(problems)]
        raise ModelError("\n- ".join(lines))


def checks(
    model: Any, task: Subject, *, seed: int = 0, batch: Columns | None = None, prompt: Prompt | None = None
) -> list[tuple[str, Callable[[], None]]]:
    """Return the checks of `check_model` as (name, function) pairs for a test runner; a function raises `ModelError`.

    No model is made before the first function is called; the checks that only predict share a trained model.
    """
    task = find_benchmark(task) if isinstance(task, str) else task
    if isinstance(task, Benchmark):
        inputs = load_model_inputs(task)
        task, prompt = task.task, prompt or inputs.prompt
        if batch is None:  # rows from all of the training part, with their observed labels
            rows = inputs.training("train")
            batch = rows.batch(np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).astype(np.int64))
    if batch is None:
        raise FarshiftError("to check a model on a task alone, give a batch of its inputs too")
    lacking = [name for name in task.inputs if name not in batch]
    if lacking or not len(batch[task.inputs[0]]):
        raise FarshiftError(f"the batch to check the model has no rows of {', '.join(lacking or task.inputs)}")
    checked = CheckedModel(model, task, batch, seed, prompt)
    return [(check.__name__.replace("_", " "), partial(check, checked)) for check in CHECKS]


@dataclass
class CheckedModel:
    """A user's model on one task, made, trained and queried as by the harness. `columns` has the inputs, n rows each,
    and optionally label and weight."""

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
        """Copy the training rows: the checked rows with their label."""
        columns = {"weight": np.ones(len(self), np.int64), **self.columns}
        names = [name for name in (*self.task.inputs, self.task.label, "weight") if name in columns]
        return ModelRows({name: np.array(columns[name]) for name in names}, self.row_ids, "conformance")

    def fit(self, model: Model, shift: int = 0) -> ModelRows:
        """Train a model if it has `fit`, on labels moved by some rows. Return the rows that it was trained on."""
        train, fit, label = self.train(), getattr(model, "fit", None), self.task.label
        if fit is not None:
            if label not in train.columns:
                raise FarshiftError(f"the batch to check the model has no label {label!r} to train on")
            shifted = {label: np.roll(train.columns[label], shift, axis=0)}
            train = replace(train.replaced(shifted), forms=InputFormat.of(model))
            with wrap_user_errors("fit(train, None, budget)"):
                takes = inspect.signature(fit).parameters
                fit(train, None, BUDGET, **{name: None for name in ("ood_val", "unlabelled") if name in takes})
        return train

    def make_trained(self) -> Model:
        """Make and train a new model."""
        model = self.make()
        self.fit(model)
        return model

    def make_batch(self, model: Model, rows: Rows = ALL) -> Columns:
        """Copy some rows' inputs in the format that the model requests."""
        with wrap_user_errors(f"predict on {self._locate_rows(rows)}"):
            return InputFormat.of(model).given({name: np.array(self.columns[name][rows]) for name in self.task.inputs})

    def predict(self, model: Model, batch: Columns, rows: Rows = ALL) -> Any:
        """Return a model's unchecked output for a batch of `make_batch`."""
        with wrap_user_errors(f"predict on {self._locate_rows(rows)}"):
            return model.predict(batch)

    def ask(self, model: Model, rows: Rows = ALL) -> Answers:
        """Return a model's predictions for some rows, checked against the task; `ModelError` says what is wrong."""
        return read_answer(self.predict(model, self.make_batch(model, rows), rows), self._locate_rows(rows), self.task)

    def _locate_rows(self, rows: Rows) -> BatchLocation:
        return BatchLocation("the checked rows", 0, self.row_ids[rows])

    @cached_property
    def shared_model(self) -> Model:
        """One trained model, shared by the checks that only predict."""
        return self.make_trained()

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


def _raise_if_any(rows: NDArray[np.int64], of: CheckedModel, problem: str) -> None:
    """Raise `ModelError` if there are rows with a problem."""
    if len(rows):
        raise ModelError(f"{problem}: {len(rows)} of {len(of)} rows, the first is row {rows.min()}")


def it_can_be_made(model: CheckedModel) -> None:
    model.make()


def every_row_gets_an_answer_of_the_right_kind(model: CheckedModel) -> None:
    model.answers  # noqa: B018


def a_batch_may_be_one_row(model: CheckedModel) -> None:
    model.find_changed_rows(slice(1))  # only that it works; the next checks compare the predictions


def asked_again_it_answers_alike(model: CheckedModel) -> None:
    _raise_if_any(model.find_changed_rows(), model, "predictions differ when the same rows are predicted again")


def batches_do_not_matter(model: CheckedModel) -> None:
    for size in (1, 7):
        departing = [model.find_changed_rows(slice(start, start + size)) for start in range(0, len(model), size)]
        problem = f"predictions in batches of {size} differ from those in one batch of {len(model)}"
        _raise_if_any(np.concatenate(departing), model, problem)


def the_order_of_rows_does_not_matter(model: CheckedModel) -> None:
    departing = model.find_changed_rows(draw_permutation("conformance/order", model.row_ids))
    _raise_if_any(departing, model, "predictions differ when the rows are in another order")


def predict_leaves_its_input_alone(model: CheckedModel) -> None:
    batch, before = model.make_batch(model.shared_model), model.make_batch(model.shared_model)
    model.predict(model.shared_model, batch)
    _check_unchanged(batch, before, "predict")


def probabilities_agree_with_predictions(model: CheckedModel) -> None:
    answers = model.answers
    if answers.scores is not None and model.task.type == "classification":
        unlikely = answers.answered & (compute_shortfall(answers.scores, answers.prediction) > TOLERANCE)
        _raise_if_any(np.flatnonzero(unlikely), model, "the predicted class is not the most probable one by the scores")


def fit_leaves_the_training_rows_alone(model: CheckedModel) -> None:
    _check_unchanged(model.fit(model.make()).columns, model.train().columns, "fit")


def the_same_seed_gives_the_same_model(model: CheckedModel) -> None:
    departing = model.find_changed_rows(model=model.make_trained())
    _raise_if_any(departing, model, f"predictions differ when it is made again with seed {model.seed}")


def one_model_does_not_change_another(model: CheckedModel) -> None:
    first = model.make_trained()
    before = model.ask(first)
    other = model.make()
    if other is first and other is not model.given:
        raise ModelError("the factory returned the same object twice: return a new one each time")
    model.fit(other, shift=1)
    model.ask(other, slice(None, None, -1))
    departing = np.flatnonzero(find_differences(before, model.ask(first), model.task))
    _raise_if_any(
        departing, model, "predictions differ after another model was made: they share state (class or global)"
    )


def _check_unchanged(now: Columns, before: Columns, who: str) -> None:
    changed = [name for name in sorted(before) if name not in now or not _is_same_array(now[name], before[name])]
    changed += sorted(now.keys() - before.keys())
    if changed:
        raise ModelError(f"{who} changed the columns that it received ({', '.join(changed)}): work on a copy")


def _is_same_array(left: NDArray[Any], right: NDArray[Any]) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if left.dtype == object:  # texts, files, images or arrays of samples
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        return all(a == b if isinstance(a, str | bytes) else np.array_equal(a, b) for a, b in pairs)
    return left.tobytes() == right.tobytes()  # as bytes, since NaN is not equal to itself


CHECKS: tuple[Callable[[CheckedModel], None], ...] = (
    it_can_be_made,
    every_row_gets_an_answer_of_the_right_kind,
    a_batch_may_be_one_row,
    asked_again_it_answers_alike,
    batches_do_not_matter,
    the_order_of_rows_does_not_matter,
    predict_leaves_its_input_alone,
    probabilities_agree_with_predictions,
    fit_leaves_the_training_rows_alone,
    the_same_seed_gives_the_same_model,
    one_model_does_not_change_another,
)
