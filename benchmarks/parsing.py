"""Parsing of the output of `predict`: every permitted form, checked against the task, as `Answers`."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import FarshiftError, ModelError, get_first_line, shorten_list
from ..core.plugins import PACKAGE
from ..core.text import format_count
from .answers import ABSTAINED, ANSWERED, FAILED, Answers, Failed
from .boxes import BadBoxes, read_boxes, write_boxes
from .model import Task
from .settings import MAX_TEXT

_SUM_TOLERANCE = 1e-3
_NO_ROWS = (str, bytes, Mapping, Set)
"""Types with a length that are not sequences of predictions."""


@dataclass(frozen=True)
class BatchLocation:
    """The part, batch and row ids of a prediction; formatted only for an error."""

    part: str
    batch: int
    rows: NDArray[np.uint64]

    def __str__(self) -> str:
        return f"{self.part}, batch {self.batch} (rows {self.rows[0]:016x} .. {self.rows[-1]:016x})"


@contextmanager
def wrap_user_errors(where: str | Callable[[], str]) -> Iterator[None]:
    """Turn any exception of the user's code into a `ModelError` that says where, including `SystemExit`. A function
    formats it only if it is needed."""
    try:
        yield
    except FarshiftError:
        raise
    except (Exception, SystemExit) as error:
        where = where if isinstance(where, str) else where()
        raise ModelError(
            f"{where} raised {type(error).__name__}: {get_first_line(error, silent='no message')}{_locate_error(error)}"
        ) from error


def _locate_error(error: BaseException) -> str:
    """Return where in the user's code an error arose, such as ` (my_model.py:12)`."""
    packages = [str(file.parent) for file in PACKAGE.glob("*/__init__.py")]
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((*packages, "<")) and "site-packages" not in f.filename]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def read_answer(answer: Any, location: BatchLocation, task: Task) -> Answers:
    """Parse the output of `predict` for a batch as `Answers` of its rows; `ModelError` says what is wrong, and where.

    Permitted are: `Answers`; (n,) integers, finite numbers or texts, depending on the task (a class also by its name,
    if classes have names); a list of those with None (abstained) or `Failed` (lost) in it, or a masked array (masked:
    abstained); for classification an (n, classes) array of probabilities; for multilabel tasks an (n, classes) array of
    scores; for detection n arrays of boxes (boxes.py).
    """
    with wrap_user_errors(lambda: f"reading the {type(answer).__name__} that predict returned on {location}"):
        _check_is_sequence(answer, location)
        if isinstance(answer, Answers):
            status = np.asarray(answer.status)
            if status.shape != (len(answer),) or not np.isin(status, (ANSWERED, ABSTAINED, FAILED)).all():
                raise ModelError(
                    f"predict returned Answers whose status is not {ANSWERED}, {ABSTAINED} or {FAILED} per row on "
                    f"{location}"
                )
            if task.type == "multilabel" and answer.scores is None:
                raise ModelError(f"predict returned Answers without scores of the {task.classes} labels on {location}")
            scores = None if answer.scores is None else np.asarray(answer.scores)
            values = scores if task.type == "multilabel" else np.asarray(answer.prediction)
            return _fill_rows(values, status.astype(np.int8), location, task, scores)
        if isinstance(answer, np.ma.MaskedArray):
            answer = answer.tolist()  # masked values become None
        # Only these may have None or `Failed` in them.
        if task.in_text or isinstance(answer, list | tuple) or getattr(answer, "dtype", "") == np.dtype(object):
            answer = list(answer)
            _check_count(len(answer), location)
            kinds = [ABSTAINED if item is None else FAILED if isinstance(item, Failed) else ANSWERED for item in answer]
            if any(kinds):
                return _fill_rows(answer, np.array(kinds, np.int8), location, task)
        return _parse_array(answer if task.in_text else np.asarray(answer), location, task)


def _fill_rows(
    values: Any, status: NDArray[np.int8], location: BatchLocation, task: Task, scores: NDArray[Any] | None = None
) -> Answers:
    """Return answers of which some rows have no prediction: only the values of those that have one are read. scores:
    probabilities given beside the predictions."""
    here = np.flatnonzero(status == ANSWERED)
    there = BatchLocation(location.part, location.batch, location.rows[here])
    given: Any = values[here] if isinstance(values, np.ndarray) else [values[row] for row in here]
    width = task.classes or 0
    if task.type == "multilabel":
        filled = np.zeros((len(status), width), np.float32)
        if len(here):
            filled[here] = _parse_label_scores(np.asarray(given), there, task)
        return Answers((filled > 0).sum(axis=1), status, filled)
    blank: Any = "" if task.in_text else 0
    kind: Any = object if task.in_text else np.float64 if task.type == "regression" else np.int64
    prediction = np.full(len(status), blank, kind)
    if scores is None:
        if len(here):
            prediction[here] = _parse_array(given if task.in_text else np.asarray(given), there, task).prediction
        return Answers(prediction, status)
    _check_count(len(scores), location)
    filled = np.full((len(status), width), 1 / (width or 1), np.float32)
    if len(here):
        prediction[here] = _parse_predictions(given if task.in_text else np.asarray(given), there, task)
        filled[here] = _parse_probabilities(scores[here], there, task)
    return Answers(prediction, status, filled)


def _check_is_sequence(answer: Any, location: BatchLocation) -> None:
    """Raise `ModelError` unless the output is a sequence with one prediction per row."""
    try:
        given = None if isinstance(answer, _NO_ROWS) else len(answer)
    except TypeError:
        given = None
    if given is None:
        kind = type(answer).__name__
        raise ModelError(
            f"predict returned {kind} instead of {format_count(len(location.rows), 'prediction')} on {location}"
        )
    _check_count(given, location)


def _check_count(given: int, location: BatchLocation) -> None:
    if given != len(location.rows):
        expected = format_count(len(location.rows), "row")
        raise ModelError(f"predict returned {format_count(given, 'prediction')} for {expected} on {location}")


def _parse_array(values: Any, location: BatchLocation, task: Task) -> Answers:
    """Return answers in which every row has a prediction."""
    if task.type == "multilabel":
        scores = _parse_label_scores(np.asarray(values), location, task)
        return Answers.all_given((scores > 0).sum(axis=1), scores)
    if task.type == "classification" and values.ndim == 2 and values.dtype.kind == "f":
        scores = _parse_probabilities(values, location, task)
        return Answers.all_given(scores.argmax(axis=1).astype(np.int64), scores)
    return Answers.all_given(_parse_predictions(values, location, task))


def _parse_predictions(values: Any, location: BatchLocation, task: Task) -> NDArray[Any]:
    if task.type == "classification":
        return _parse_classes(values, location, task)
    if task.type == "regression":
        return _parse_numbers(values, location)
    return _parse_boxes(values, location) if task.type == "detection" else _parse_texts(values, location)


def _check_finite(values: NDArray[Any], location: BatchLocation) -> None:
    if values.ndim != 1:
        kind = "one prediction per row"
        raise ModelError(
            f"predict returned shape {values.shape}, expected ({len(location.rows)},): {kind}, on {location}"
        )
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values))
        raise ModelError(f"predict returned NaN or infinity for {_describe_bad_rows(location, bad)} on {location}")


def _describe_bad_rows(location: BatchLocation, bad: NDArray[np.int64]) -> str:
    """Name the first of the invalid rows and their number."""
    return f"row {location.rows[bad[0]]:016x} ({format_count(len(bad), 'row')})"


def _parse_classes(values: NDArray[Any], location: BatchLocation, task: Task) -> NDArray[np.int64]:
    _check_finite(values, location)
    if (
        task.names
        and values.dtype.kind in "UO"
        and len(values)
        and all(isinstance(value, str) for value in values.tolist())
    ):
        return _parse_class_names(values.tolist(), location, task)
    if values.dtype == bool and task.classes == 2:
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu":
        raise ModelError(f"predict returned dtype {values.dtype}, expected whole numbers (classes), on {location}")
    classes = task.classes or 0
    if len(values) and (values.min() < 0 or values.max() >= classes):
        row = np.flatnonzero((values < 0) | (values >= classes))[0]
        raise ModelError(
            f"predict returned class {values[row]} for row {location.rows[row]:016x}, not one of 0..{classes - 1}, on "
            f"{location}"
        )
    return values.astype(np.int64)


def _parse_class_names(class_names: list[str], location: BatchLocation, task: Task) -> NDArray[np.int64]:
    """Convert class names to class indices."""
    known = {name: index for index, name in enumerate(task.names)}
    if wrong := [row for row, name in enumerate(class_names) if name not in known]:
        raise ModelError(
            f"predict returned {class_names[wrong[0]]!r} for row {location.rows[wrong[0]]:016x}, which is not one of "
            "the classes "
            f"{shorten_list(task.names)}, on {location}"
        )
    return np.array([known[name] for name in class_names], np.int64)


def _parse_numbers(values: NDArray[Any], location: BatchLocation) -> NDArray[np.float64]:
    if values.dtype.kind not in "iuf":
        raise ModelError(f"predict returned dtype {values.dtype}, expected numbers, on {location}")
    with np.errstate(over="ignore"):  # overflow in float64 gives infinity
        numbers = values.astype(np.float64)
    _check_finite(numbers, location)
    return numbers


def _parse_texts(answer: Any, location: BatchLocation) -> NDArray[Any]:
    values = np.empty(len(location.rows), object)
    values[:] = list(answer)
    wrong = [row for row, value in enumerate(values) if not isinstance(value, str)]
    if wrong:
        kind = type(values[wrong[0]]).__name__
        raise ModelError(
            f"predict returned {kind} instead of text for row {location.rows[wrong[0]]:016x} on {location}"
        )
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        raise ModelError(f"predict returned text that is not valid Unicode on {location}") from None
    longest = max(map(len, values), default=0)
    if longest > MAX_TEXT:
        raise ModelError(f"predict returned a text of {longest} characters (at most {MAX_TEXT}) on {location}")
    return values


def _parse_boxes(answer: Any, location: BatchLocation) -> NDArray[Any]:
    """Convert boxes to texts; a text is checked and stays unchanged."""
    written = []
    for row, boxes in zip(location.rows, answer, strict=True):
        try:
            written.append(boxes if isinstance(boxes, str) and read_boxes(boxes) is not None else write_boxes(boxes))
        except BadBoxes as error:
            raise ModelError(f"predict returned no valid boxes for row {row:016x} on {location}: {error}") from error
    return _parse_texts(written, location)


def _parse_label_scores(values: NDArray[Any], location: BatchLocation, task: Task) -> NDArray[np.float32]:
    """Check that there is a finite score for each label, shape (n, classes)."""
    if values.shape != (len(location.rows), task.classes) or values.dtype.kind not in "iuf":
        raise ModelError(
            f"predict returned scores of shape {values.shape} and dtype {values.dtype}, expected "
            f"({len(location.rows)}, {task.classes}) numbers, one per label, on {location}"
        )
    with np.errstate(over="ignore"):  # overflow in float32 gives infinity
        scores = values.astype(np.float32)
    if not np.isfinite(scores).all():
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        raise ModelError(f"predict returned NaN or infinity for {_describe_bad_rows(location, bad)} on {location}")
    return scores


def _parse_probabilities(values: NDArray[Any], location: BatchLocation, task: Task) -> NDArray[np.float32]:
    """Check class probabilities, shape (n, classes), each row summing to one."""
    if task.type != "classification" or values.shape != (len(location.rows), task.classes) or values.dtype.kind != "f":
        expected = f"({len(location.rows)}, {task.classes}) probabilities" if task.classes else "no probabilities"
        raise ModelError(
            f"predict returned scores of shape {values.shape} and dtype {values.dtype}, expected {expected}, "
            f"on {location}"
        )
    sums = values.sum(axis=1, dtype=np.float64)
    bad = np.flatnonzero(~((abs(sums - 1) < _SUM_TOLERANCE) & (values >= 0).all(axis=1)))
    if len(bad):
        raise ModelError(
            f"predict returned scores that are not probabilities for {_describe_bad_rows(location, bad)}: "
            f"its scores sum to {sums[bad[0]]:.4g}: apply a softmax, or return classes, on {location}"
        )
    return values.astype(np.float32)
