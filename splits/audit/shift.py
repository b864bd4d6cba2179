"""Diversity shift and correlation shift (Ye et al. 2022, OoD-Bench, arXiv 2106.03721, section 2.2).

With p and q the distributions of train and test over features z that tell the two apart:

    diversity shift    1/2 * sum of |p(z) - q(z)| where p(z) q(z) = 0
    correlation shift  1/2 * sum of sqrt(p(z) q(z)) * sum over y of |p(y|z) - q(y|z)| where p(z) q(z) > 0

The paper learns z with a network and estimates densities with kernels. Here z is linear and discretised, so that an
audit takes a second. One classifier of train against test is fitted to all rows and one to the rows of each class, on
one half (ridge regression); z are the first two principal components of their scores, cut into 4 x 4 cells of equal
mass along each; p and q are counted on the other half. A cell counts as empty in one part if that part's share is under
2 % of the other's. The mean square over eight random splits of the same rows and sizes is subtracted from each square,
because chance adds to a difference like independent noise. Values below 0.1 are within the remaining noise. Shifts that
no linear score detects are missed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits, draw_permutation
from .features import ROWS, Matrix, compute_features, fit_ridge, list_numeric_fields
from .labels import encode_classes
from .parted import PartedRows

_CLASSES, _COLUMNS = 20, 256
_COMPONENTS, _CUTS = 2, 4
_RESPLITS = 8
_LEAST_ROWS = 20
_EMPTY = 0.02


def measure_domain_shift(rows: PartedRows) -> dict[str, float]:
    """Return `diversity` and `correlation` shift, each from 0 to 1, rounded to 3 digits. Empty for kinds other than
    domain shift, for inputs that are not numbers, and for labels of more than 20 classes."""
    labelled = encode_classes(rows)
    if rows.definition.kind != "domain" or not rows.shifted or not list_numeric_fields(rows) or labelled is None:
        return {}
    if len(labelled[1]) > _CLASSES:
        return {}
    train, test = (rows.sample(name, ROWS) for name in ("train", "ood_test"))
    both = np.concatenate([train, test])
    domain = np.arange(len(both)) >= len(train)
    label, ids = labelled[0][both], rows.row_ids[both]
    inputs = compute_features(rows, both, _COLUMNS)
    fit = draw_bits("audit/shift", ids) % np.uint64(2) == 0
    if inputs is None or any(
        (side & domain).sum() < _LEAST_ROWS or (side & ~domain).sum() < _LEAST_ROWS for side in (fit, ~fit)
    ):
        return {}
    cell = _assign_cells(_compute_scores(inputs, domain, label, fit), fit)[~fit]
    measured_shifts = compute_shifts(cell, label[~fit], domain[~fit])
    counters = ids[~fit]
    by_chance = np.mean(
        [
            compute_shifts(cell, label[~fit], domain[~fit][draw_permutation(f"audit/shift/{k}", counters)])
            for k in range(_RESPLITS)
        ],
        axis=0,
    )
    return {
        name: round(float(max(0.0, value**2 - chance**2) ** 0.5), 3)
        for name, value, chance in zip(("diversity", "correlation"), measured_shifts, by_chance, strict=True)
    }


def compute_shifts(cell: NDArray[np.int64], label: NDArray[np.int64], test: NDArray[np.bool_]) -> tuple[float, float]:
    """Compute diversity and correlation shift by the formulas above from counts; all arrays have shape (rows,)."""
    counts = np.zeros((2, int(cell.max()) + 1, int(label.max()) + 1))
    np.add.at(counts, (test.astype(np.int64), cell, label), 1)
    size = counts.sum(2)
    p, q = size / size.sum(1, keepdims=True)
    empty = np.minimum(p, q) <= _EMPTY * np.maximum(p, q)
    given = counts / np.maximum(size, 1)[:, :, None]
    apart = np.abs(given[0] - given[1]).sum(1)
    return float(np.abs(p - q)[empty].sum() / 2), float((np.sqrt(p * q) * apart)[~empty].sum() / 2)


def _compute_scores(
    inputs: Matrix, domain: NDArray[np.bool_], label: NDArray[np.int64], fit: NDArray[np.bool_]
) -> Matrix:
    """Return each row's scores for test against train, over all rows and per class, shape (rows, 1 + classes)."""
    columns = []
    for label_class in (None, *np.unique(label).tolist()):
        some = fit if label_class is None else fit & (label == label_class)
        if min((some & domain).sum(), (some & ~domain).sum()) >= _LEAST_ROWS:
            columns.append(fit_ridge(inputs[some], domain[some, None].astype(np.float64))(inputs)[:, 0])
    return np.stack(columns, axis=1)


def _assign_cells(scores: Matrix, fit: NDArray[np.bool_]) -> NDArray[np.int64]:
    known = scores[fit]
    centre, spread = known.mean(0), known.std(0) + 1e-9
    standard = (scores - centre) / spread
    axes = np.linalg.eigh(np.cov(standard[fit], rowvar=False).reshape(standard.shape[1], -1))[1]
    cell = np.zeros(len(scores), np.int64)
    for axis in axes.T[::-1][:_COMPONENTS]:
        # The sign of an eigenvector is arbitrary and differs between machines.
        along = standard @ axis * np.sign(axis[np.abs(axis).argmax()])
        cuts = np.quantile(along[fit], np.arange(1, _CUTS) / _CUTS)
        cell = cell * _CUTS + np.searchsorted(cuts, along)
    return cell
