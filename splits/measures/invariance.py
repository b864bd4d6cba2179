"""Approximate invariance of sets of inputs across environments, for least squares with an intercept.

Parulekar, Shanmugam and Shakkottai 2023, "PAC Generalization via Invariant Representations" (ICML, arXiv 2205.15196),
ask whether a representation that is approximately invariant in a number of training environments remains so in unseen
ones. Representations here are sets of inputs. The gap of a set in an environment is the excess risk there of the
weights fitted to all training environments: their mean squared error less that of the environment's own best weights
on the set. A set is epsilon-invariant in environments if its gap is at most epsilon in each of them. (The measure of
the gap is this project's, not the paper's notation.)
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Environment = tuple[Matrix, Matrix]
"""Inputs (rows, width) and labels (rows,)."""


def list_sets(width: int) -> list[list[int]]:
    """Return every set of at least one of `width` inputs, the smallest first."""
    return [list(chosen) for size in range(1, width + 1) for chosen in combinations(range(width), size)]


def measure_gaps(fitted: Sequence[Environment], sets: Sequence[list[int]], measured: Sequence[Environment]) -> Matrix:
    """Return the gap of each set in each environment of `measured`, with weights fitted to all rows of `fitted`; shape
    (sets, environments)."""
    pooled = np.sum([_sum_products(environment) for environment in fitted], axis=0)
    moments = [_sum_products(environment) / len(environment[1]) for environment in measured]
    gaps = np.empty((len(sets), len(moments)))
    for row, chosen in enumerate(sets):
        columns = [index + 1 for index in chosen]
        weights = _solve(pooled, columns)
        for column, moment in enumerate(moments):
            gaps[row, column] = _compute_risk(moment, columns, weights) - _compute_risk(
                moment, columns, _solve(moment, columns)
            )
    return gaps


def measure_broken_share(train: Sequence[Environment], test: Sequence[Environment], epsilon: float) -> float:
    """Return the share of test environments in which a set of inputs is not epsilon-invariant, the mean over the sets
    that are so in all training environments; NaN if none is."""
    sets = list_sets(train[0][0].shape[1])
    is_invariant = (measure_gaps(train, sets, train) <= epsilon).all(axis=1)
    gaps = measure_gaps(train, [sets[index] for index in np.flatnonzero(is_invariant)], test)
    return float((gaps > epsilon).mean()) if is_invariant.any() else float("nan")


def _sum_products(environment: Environment) -> Matrix:
    """The sums of products of 1, the inputs and the label, (width + 2, width + 2)."""
    x, y = environment
    columns = np.column_stack([np.ones(len(y)), x, y])
    return columns.T @ columns


def _solve(products: Matrix, columns: list[int]) -> Matrix:
    """Least-squares weights of the intercept and the chosen columns."""
    used = [0, *columns]
    weights, *_ = np.linalg.lstsq(products[np.ix_(used, used)], products[used, -1], rcond=None)
    return np.asarray(weights, np.float64)


def _compute_risk(moment: Matrix, columns: list[int], weights: Matrix) -> float:
    """The mean squared error of weights, from mean products."""
    both = np.concatenate([weights, [-1.0]])
    used = [0, *columns, len(moment) - 1]
    return float(both @ moment[np.ix_(used, used)] @ both)
