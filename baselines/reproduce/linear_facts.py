"""Errors and accuracies of linear models of chosen inputs on a split's rows: oracles with information that no model is
given. Both fits are convex, so that they depend on the rows only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...loaders.split import load

Matrix = NDArray[np.float64]
Predict = Callable[[Matrix], NDArray[np.float64]]


def least_squares_error(split: str, fit: str, part: str, field: str, inputs: list[int]) -> float:
    """The root mean squared error on a part of least squares with an intercept, fitted on the part `fit`, from the
    numbers of a field at the positions `inputs`, counted from 0; all if none are given. Within one part, even rows are
    predicted by a fit on odd ones, and odd by even."""
    truth, predictions = _predict_part(split, fit, part, field, inputs, _fit_least_squares)
    return float(np.sqrt(np.square(predictions - truth).mean()))


def logistic_accuracy(split: str, fit: str, part: str, field: str, inputs: list[int]) -> float:
    """The accuracy on a part of logistic regression with two classes and a negligible penalty, fitted and evaluated as
    in `least_squares_error`."""
    truth, predictions = _predict_part(split, fit, part, field, inputs, _fit_logistic)
    return float(np.mean(predictions == truth))


def _predict_part(
    split: str, fit: str, part: str, field: str, inputs: list[int], fitted: Callable[[Matrix, Matrix], Predict]
) -> tuple[Matrix, Matrix]:
    """Labels and predictions of the rows of a part."""
    (x, y), (queries, truth) = (_load_rows(split, part_name, field, inputs) for part_name in (fit, part))
    if fit != part:
        return truth, fitted(x, y)(queries)
    predictions = np.empty(len(y))
    for half in (0, 1):
        predictions[half::2] = fitted(x[1 - half :: 2], y[1 - half :: 2])(x[half::2])
    return y, predictions


def _load_rows(split: str, part: str, field: str, inputs: list[int]) -> tuple[Matrix, Matrix]:
    rows = load(split, part)
    x = np.asarray(rows.numpy()[field], np.float64)
    return (x[:, inputs] if inputs else x), np.asarray(rows.true_labels(), np.float64)


def _fit_least_squares(x: Matrix, y: Matrix) -> Predict:
    centre = x.mean(axis=0)
    weights, *_ = np.linalg.lstsq(x - centre, y - y.mean(), rcond=None)
    return lambda queries: np.asarray((queries - centre) @ weights + y.mean())


def _fit_logistic(x: Matrix, y: Matrix) -> Predict:
    from sklearn.linear_model import LogisticRegression

    centre, spread = x.mean(axis=0), x.std(axis=0)
    model = LogisticRegression(C=1e6, max_iter=10_000).fit((x - centre) / spread, y)
    return lambda queries: np.asarray(model.predict((queries - centre) / spread))
