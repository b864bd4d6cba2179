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

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_permutation
from ...core.errors import FarshiftError, ModelError
from ..benchmark import Benchmark
from ..model import Columns, Task
from ..model_inputs.load import load_model_inputs
from ..model_inputs.rows import ModelRows
from .checked_model import (
    ROWS,
    TASKS,
    TOLERANCE,
    CheckedModel,
    change_labels,
    compute_shortfall,
    find_differences,
    make_columns,
)
from .factory import get_model_name

if TYPE_CHECKING:
    from ..prompting.prompt import Prompt


def check_model(
    model: Any,
    task: Benchmark | Task | None = None,
    *,
    seed: int = 0,
    batch: Columns | None = None,
    prompt: Prompt | None = None,
) -> None:
    """Check a model against its contract; `ModelError` lists all problems, one per line.

    task: a benchmark, of which 64 training rows and the prompt are used; or inputs and a label alone. Without one the
      model must be able to predict on at least one of four small tasks (two integers or an image to a class, numbers to
      a number, a text to a text), and is checked on those that it can do.
    batch: the rows to predict, by input, first axis the row. By default those of the benchmark, and of a task alone
      drawn at random: texts for sequence tasks, numbers otherwise (`make_columns`). A model with `fit` is trained on
      the same rows; their label may be among the columns, and is drawn at random otherwise. For prediction a model
      receives the inputs only.
    prompt: the prompt for a language model.

    >>> import farshift as fs
    >>> fs.check_model(fs.predictor(lambda batch: (batch["a"] + batch["b"]) % 97), fs.benchmark("modadd97/xi35"))
    """
    problems: list[str] = []
    for _, check in checks(model, task, seed=seed, batch=batch, prompt=prompt):
        try:
            check()
        except ModelError as error:
            problems += str(error).splitlines()
    if problems:
        lines = [f"{get_model_name(model)} does not fulfil the contract of a model:", *dict.fromkeys(problems)]
        raise ModelError("\n- ".join(lines))


def checks(
    model: Any,
    task: Benchmark | Task | None = None,
    *,
    seed: int = 0,
    batch: Columns | None = None,
    prompt: Prompt | None = None,
) -> list[tuple[str, Callable[[], None]]]:
    """Return the checks of `check_model` as (name, function) pairs for a test runner; a function raises `ModelError`.

    No model is made before the first function is called; the checks that only predict share a trained model.
    """
    if isinstance(task, Benchmark):
        inputs = load_model_inputs(task)
        task, prompt, batch = task.task, prompt or inputs.prompt, batch or _draw_batch(inputs.training("train"))
    if batch is not None:
        _check_batch(task, batch)
    checked_tasks = _CheckedTasks(
        [
            CheckedModel(model, checked_task, make_columns(checked_task) if batch is None else batch, seed, prompt)
            for checked_task in (TASKS if task is None else (task,))
        ],
        only_able=task is None,
    )
    return [(check.__name__.replace("_", " "), partial(checked_tasks.to, check)) for check in CHECKS]


def _draw_batch(rows: ModelRows) -> Columns:
    """Return rows from all of a part, with their observed labels."""
    return rows.batch(np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).astype(np.int64))


def _check_batch(task: Task | None, batch: Columns) -> None:
    if task is None:
        raise FarshiftError("a batch to check a model needs a task: give task too")
    lacking = [name for name in task.inputs if name not in batch]
    if lacking or not len(batch[task.inputs[0]]):
        raise FarshiftError(f"the batch to check the model has no rows of {', '.join(lacking or task.inputs)}")


@dataclass
class _CheckedTasks:
    """A model on the tasks to check; `only_able`: only on those that it can predict."""

    tried: list[CheckedModel]
    only_able: bool

    def to(self, check: Callable[[CheckedModel], None]) -> None:
        problems = []
        for model in self.models:
            try:
                check(model)
            except ModelError as error:
                problems.append(f"{_describe_task(model.task)}: {error}" if self.only_able else str(error))
        if problems:
            raise ModelError("\n".join(problems))

    @cached_property
    def models(self) -> list[CheckedModel]:
        if not self.only_able:
            return self.tried
        able, reasons = [], []
        for model in self.tried:
            try:
                model.answers  # noqa: B018
                able.append(model)
            except ModelError as error:
                reasons.append(f"{_describe_task(model.task)}: {error}")
        if not able:
            raise ModelError(
                "\n".join([*reasons, "the model can do none of the tasks tried: give its task and a batch"])
            )
        return able


def _describe_task(task: Task) -> str:
    return f"{task.type} of {', '.join(task.inputs)}"


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
    train = model.train()
    model.fit(model.make(), train)
    _check_unchanged(train.columns, model.train().columns, "fit")


def the_same_seed_gives_the_same_model(model: CheckedModel) -> None:
    departing = model.find_changed_rows(model=model.train_model())
    _raise_if_any(departing, model, f"predictions differ when it is made again with seed {model.seed}")


def one_model_does_not_change_another(model: CheckedModel) -> None:
    first = model.train_model()
    before = model.ask(first)
    other = model.make()
    if other is first and other is not model.given:
        raise ModelError("the factory returned the same object twice: return a new one each time")
    train, label = model.train(), model.task.label
    model.fit(other, train.replaced({label: change_labels(model.task, train.columns[label])}))
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
    if left.dtype == object:
        return all(map(_is_same_value, left.tolist(), right.tolist()))
    return left.tobytes() == right.tobytes()  # as bytes, since NaN is not equal to itself


def _is_same_value(left: Any, right: Any) -> bool:
    """Whether two texts, files, images or arrays of samples are equal."""
    return bool(left == right) if isinstance(left, str | bytes) else np.array_equal(left, right)


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
