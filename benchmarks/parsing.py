"""Parsing of the output of `predict`: every permitted form, checked against the task, as `Answers`."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
_LARGEST = 1e150
"""The largest number that a model may predict: the sum of squares of 10^8 of them is finite."""
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
                states = f"{ANSWERED}, {ABSTAINED} or {FAILED} per row"
                raise _make_error(f"Answers whose status is not {states}", location)
            if task.type == "multilabel" and answer.scores is None:
                raise _make_error(f"Answers without scores of the {task.classes} labels", location)
            scores = None if answer.scores is None else np.asarray(answer.scores)
            values = scores if task.type == "multilabel" else np.asarray(answer.prediction)
            return _parse_answered(values, status.astype(np.int8), location, task, scores)
        if isinstance(answer, np.ma.MaskedArray):
            answer = answer.tolist()  # masked values become None
        # Only these may have None or `Failed` in them.
        if task.in_text or isinstance(answer, list | tuple) or getattr(answer, "dtype", "") == np.dtype(object):
            answer = list(answer)
            _check_count(len(answer), location)
            kinds = [ABSTAINED if item is None else FAILED if isinstance(item, Failed) else ANSWERED for item in answer]
            if any(kinds):
                return _parse_answered(answer, np.array(kinds, np.int8), location, task)
        return _parse_rows(answer, location, task)


def _make_error(
    what: str, location: BatchLocation, bad: Sequence[int] | NDArray[np.int64] = (), why: str = ""
) -> ModelError:
    """Make the error for an output of `predict`; `bad`: the positions of the rows concerned, of which the first is
    named; `why`: what is wrong with it."""
    rows = f" for row {location.rows[bad[0]]:016x} ({format_count(len(bad), 'row')})" if len(bad) else ""
    return ModelError(f"predict returned {what}{rows}{why} on {location}")


def _parse_answered(
    values: Any, status: NDArray[np.int8], location: BatchLocation, task: Task, scores: NDArray[Any] | None = None
) -> Answers:
    """Return answers of which some rows have no prediction: only the values of those that have one are read. scores:
    probabilities given beside the predictions."""
    _check_count(len(status), location)
    if scores is not None:
        _check_count(len(scores), location)
    here = status == ANSWERED
    if not here.any():
        return make_empty_answers(task).scatter(here, status)
    given = values[here] if isinstance(values, np.ndarray) else [values[row] for row in np.flatnonzero(here)]
    there = replace(location, rows=location.rows[here])
    return _parse_rows(given, there, task, None if scores is None else scores[here]).scatter(here, status)


def make_empty_answers(task: Task) -> Answers:
    """Return answers without rows."""
    kind: Any = object if task.in_text else np.float64 if task.type == "regression" else np.int64
    scores = np.empty((0, task.classes or 0), np.float32) if task.type == "multilabel" else None
    return Answers.all_given(np.empty(0, kind), scores)


def _check_is_sequence(answer: Any, location: BatchLocation) -> None:
    """Raise `ModelError` unless the output is a sequence with one prediction per row."""
    try:
        given = None if isinstance(answer, _NO_ROWS) else len(answer)
    except TypeError:
        given = None
    if given is None:
        expected = format_count(len(location.rows), "prediction")
        raise _make_error(f"{type(answer).__name__} instead of {expected}", location)
    _check_count(given, location)


def _check_count(given: int, location: BatchLocation) -> None:
    if given != len(location.rows):
        expected = format_count(len(location.rows), "row")
        raise _make_error(f"{format_count(given, 'prediction')} for {expected}", location)


def _parse_rows(values: Any, location: BatchLocation, task: Task, scores: NDArray[Any] | None = None) -> Answers:
    """Return answers in which every row has a prediction. scores: probabilities given beside the predictions."""
    values = values if task.in_text else np.asarray(values)
    if task.type == "multilabel":
        given = _parse_label_scores(values, location, task)
        return Answers.all_given((given > 0).sum(axis=1), given)
    if scores is not None:
        return Answers.all_given(
            _parse_predictions(values, location, task), _parse_probabilities(scores, location, task)
        )
    if task.type == "classification" and values.ndim == 2 and values.dtype.kind == "f":
        given = _parse_probabilities(values, location, task)
        return Answers.all_given(given.argmax(axis=1).astype(np.int64), given)
    return Answers.all_given(_parse_predictions(values, location, task))


def _parse_predictions(values: Any, location: BatchLocation, task: Task) -> NDArray[Any]:
    if task.type == "classification":
        return _parse_classes(values, location, task)
    if task.type == "regression":
        return _parse_numbers(values, location)
    return _parse_boxes(values, location) if task.type == "detection" else _parse_texts(values, location)


def _check_finite(values: NDArray[Any], location: BatchLocation) -> None:
    if values.ndim != 1:
        raise _make_error(f"shape {values.shape}, expected ({len(location.rows)},): one prediction per row,", location)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise _make_error("NaN or infinity", location, np.flatnonzero(~np.isfinite(values)))


def _parse_classes(values: NDArray[Any], location: BatchLocation, task: Task) -> NDArray[np.int64]:
    _check_finite(values, location)
    given = values.tolist() if task.names and values.dtype.kind in "UO" else []
    if given and all(isinstance(value, str) for value in given):
        number_of = {name: index for index, name in enumerate(task.names)}
        if bad := [row for row, name in enumerate(given) if name not in number_of]:
            why = f", which is not one of the classes {shorten_list(task.names)},"
            raise _make_error(repr(given[bad[0]]), location, bad, why)
        return np.array([number_of[name] for name in given], np.int64)
    if values.dtype == bool and task.classes == 2:
        values = values.astype(np.int64)
    if values.dtype.kind not in "iu":
        raise _make_error(f"dtype {values.dtype}, expected whole numbers (classes),", location)
    classes = task.classes or 0
    if len(bad_rows := np.flatnonzero((values < 0) | (values >= classes))):
        raise _make_error(f"class {values[bad_rows[0]]}", location, bad_rows, f", not one of 0..{classes - 1},")
    return values.astype(np.int64)


def _parse_numbers(values: NDArray[Any], location: BatchLocation) -> NDArray[np.float64]:
    if values.dtype.kind not in "iuf":
        raise _make_error(f"dtype {values.dtype}, expected numbers,", location)
    with np.errstate(over="ignore"):  # overflow in float64 gives infinity
        numbers = values.astype(np.float64)
    _check_finite(numbers, location)
    if len(bad := np.flatnonzero(abs(numbers) > _LARGEST)):
        why = ", too large to be scored: clip predictions to the range of the labels,"
        raise _make_error(f"{numbers[bad[0]]:g}", location, bad, why)
    return numbers


def _parse_texts(answer: Any, location: BatchLocation) -> NDArray[Any]:
    values = np.empty(len(location.rows), object)
    values[:] = list(answer)
    if bad := [row for row, value in enumerate(values) if not isinstance(value, str)]:
        raise _make_error(f"{type(values[bad[0]]).__name__} instead of text", location, bad)
    try:
        "".join(values).encode()
    except UnicodeEncodeError:
        raise _make_error("text that is not valid Unicode", location) from None
    longest = max(map(len, values), default=0)
    if longest > MAX_TEXT:
        raise _make_error(f"a text of {longest} characters (at most {MAX_TEXT})", location)
    return values


def _parse_boxes(answer: Any, location: BatchLocation) -> NDArray[Any]:
    """Convert boxes to texts; a text is checked and stays unchanged."""
    written = []
    for row, boxes in enumerate(answer):
        try:
            written.append(boxes if isinstance(boxes, str) and read_boxes(boxes) is not None else write_boxes(boxes))
        except BadBoxes as error:
            raise _make_error("no valid boxes", location, [row], f" ({error})") from error
    return _parse_texts(written, location)


def _parse_label_scores(values: NDArray[Any], location: BatchLocation, task: Task) -> NDArray[np.float32]:
    """Check that there is a finite score for each label, shape (n, classes)."""
    _check_scores(values, location, "iuf", task, "numbers, one per label")
    with np.errstate(over="ignore"):  # overflow in float32 gives infinity
        scores = values.astype(np.float32)
    if len(bad := np.flatnonzero(~np.isfinite(scores).all(axis=1))):
        raise _make_error("NaN or infinity", location, bad)
    return scores


def _check_scores(values: NDArray[Any], location: BatchLocation, kinds: str, task: Task, what: str) -> None:
    if values.shape != (len(location.rows), task.classes) or values.dtype.kind not in kinds:
        expected = f"({len(location.rows)}, {task.classes}) {what}"
        given = f"scores of shape {values.shape} and dtype {values.dtype}"
        raise _make_error(f"{given}, expected {expected if task.classes else 'none'},", location)


def _parse_probabilities(values: NDArray[Any], location: BatchLocation, task: Task) -> NDArray[np.float32]:
    """Check class probabilities, shape (n, classes), each row summing to one."""
    _check_scores(values, location, "f" if task.type == "classification" else "", task, "probabilities")
    sums = values.sum(axis=1, dtype=np.float64)
    if len(bad := np.flatnonzero(~((abs(sums - 1) < _SUM_TOLERANCE) & (values >= 0).all(axis=1)))):
        why = f": its scores sum to {sums[bad[0]]:.4g}: apply a softmax, or return classes,"
        raise _make_error("scores that are not probabilities", location, bad, why)
    return values.astype(np.float32)
