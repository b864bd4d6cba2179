"""Linear measures of a domain split: how well a probe separates the domains, how much accuracy it loses under the
shift, and diversity and correlation shift."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits, draw_permutation
from ..measures.divergence import split_words
from ..schema import Field
from .measures import encode_classes
from .parted import PartedRows

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 5_000
"""The most rows of a part that a linear measure uses, drawn by row id."""

_RIDGE = 1e-2

Matrix = NDArray[np.float64]
Places = NDArray[np.int64]


def list_numeric_fields(rows: PartedRows) -> list[Field]:
    """Return the input fields that are numbers or tensors of numbers."""
    return [field for field in rows.schema.of_role("input") if field.item not in ("string", "bytes", "bool")]


def compute_features(rows: PartedRows, places: Places, columns: int) -> Matrix | None:
    """Return features of the rows at `places`, shape (rows, at most `columns` per input): numbers unchanged, texts as
    word counts. None if the inputs are neither.

    An input with more numbers or distinct words than `columns` is hashed: each is added to a random column with a
    random sign (Weinberger et al. 2009, Feature hashing for large scale multitask learning).
    """
    table = rows.table.take(places)
    blocks = [_encode_numbers(table, field, columns) for field in list_numeric_fields(rows)]
    blocks += [
        _encode_words(table[field.name], columns) for field in rows.schema.of_role("input") if field.item == "string"
    ]
    return np.concatenate(blocks, axis=1) if blocks else None


def _encode_numbers(table: pa.Table, field: Field, columns: int) -> Matrix:
    import pyarrow.compute as pc

    column = table[field.name].combine_chunks()
    flat = pc.list_flatten(column) if field.shape else column
    values = flat.to_numpy(zero_copy_only=False).astype(np.float64).reshape(table.num_rows, -1)
    if values.shape[1] <= columns:
        return np.asarray(values)
    joined, signs = _hash_columns(values.shape[1], columns)
    order = np.argsort(joined, kind="stable")
    first = np.unique(joined[order], return_index=True)[1]
    return np.asarray(np.add.reduceat(values[:, order] * signs[order], first, axis=1))


def _encode_words(texts: pa.ChunkedArray, columns: int) -> Matrix:
    units = split_words(texts)
    joined, signs = _hash_columns(units.kinds, columns)
    width = min(units.kinds, columns)
    cell = units.row * width + joined[units.code]
    return np.asarray(np.bincount(cell, signs[units.code], units.rows * width), np.float64).reshape(units.rows, width)


def _hash_columns(kinds: int, columns: int) -> tuple[Places, Matrix]:
    """Return the hashed column and the sign of each of `kinds`, both of shape (kinds,)."""
    if kinds <= columns:
        return np.arange(kinds), np.ones(kinds)
    drawn = draw_bits("audit/features", np.arange(kinds, dtype=np.uint64))
    # The highest bit is independent of the lowest, which choose the column.
    return (drawn % np.uint64(columns)).astype(np.int64), np.where(drawn >> np.uint64(63), 1.0, -1.0)


def fit_ridge(inputs: Matrix, targets: Matrix) -> Callable[[Matrix], Matrix]:
    """Fit ridge regression on standardised inputs (n, d) and targets (n, k); return a function from inputs (m, d) to
    scores (m, k)."""
    centre, spread = inputs.mean(0), inputs.std(0)
    # A constant column carries no information; its rounding error must not become its scale.
    spread = np.where(spread > 1e-9 * (1 + np.abs(centre)), spread, np.inf)

    def design(values: Matrix) -> Matrix:
        return np.concatenate([(values - centre) / spread, np.ones((len(values), 1))], axis=1)

    known = design(inputs)
    gram = known.T @ known + _RIDGE * len(known) * np.eye(known.shape[1])
    weights = np.linalg.solve(gram, known.T @ targets)
    return lambda values: np.asarray(design(values) @ weights)


PROBE_CLASSES = 100
"""The most classes that a probe tells apart."""
_PROBE_COLUMNS = 1024


def fit_probes(rows: PartedRows) -> dict[str, float]:
    """Fit ridge regression to the inputs' features on a fixed half of the rows (by row id, at most 5,000 of a part).

    `domain_auroc`: AUROC of a classifier of train against ood_test, on the other halves. With at most 100 classes also
    `id_accuracy`: a classifier of the label, fitted on half of train and tested on the other half; and `ood_accuracy`:
    the same classifier on ood_test. Empty for other kinds of shift, for inputs that are neither numbers nor text, and
    for parts too small to be halved.
    """
    if rows.definition.kind != "domain" or not rows.shifted:
        return {}
    train, test = (rows.sample(name, ROWS) for name in ("train", "ood_test"))
    both = np.concatenate([train, test])
    inputs = compute_features(rows, both, _PROBE_COLUMNS)
    labelled = encode_classes(rows)
    label = labelled[0][both] if labelled is not None and len(labelled[1]) <= PROBE_CLASSES else None
    return (
        {} if inputs is None else probe_features(inputs, rows.row_ids[both], np.arange(len(both)) >= len(train), label)
    )


def probe_features(
    inputs: Matrix, row_ids: NDArray[np.uint64], domain: NDArray[np.bool_], label: Places | None
) -> dict[str, float]:
    """Return the measures of `fit_probes` for any features (n, d) of rows of train and, where `domain`, of ood_test.
    `label` has a code for each row, or is None for rows without classes."""
    half = draw_bits("probe", row_ids) % np.uint64(2) == 0
    if any(not (half & side).any() or not (~half & side).any() for side in (domain, ~domain)):
        return {}
    tell = fit_ridge(inputs[half], domain[half, None].astype(np.float64))
    results = {"domain_auroc": round(auroc(tell(inputs[~half])[:, 0], domain[~half]), 3)}
    if label is None:
        return results
    fit = half & ~domain
    known = np.unique(label[fit])
    scores = fit_ridge(inputs[fit], (label[fit, None] == known).astype(np.float64))
    right = known[scores(inputs).argmax(1)] == label
    return {
        "id_accuracy": round(float(right[~half & ~domain].mean()), 3),
        "ood_accuracy": round(float(right[domain].mean()), 3),
        **results,
    }


def auroc(scores: Matrix, positive: NDArray[np.bool_]) -> float:
    """Return the area under the ROC curve by ranks (Mann-Whitney), counting ties as one half; both of shape (n,)."""
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    n, m = int(positive.sum()), int((~positive).sum())
    return float((ranks[positive].sum() - n * (n + 1) / 2) / (n * m))


_CLASSES, _COLUMNS = 20, 256
_COMPONENTS, _CUTS = 2, 4
_RESPLITS = 8
_LEAST_ROWS = 20
_EMPTY = 0.02


def measure_domain_shift(rows: PartedRows) -> dict[str, float]:
    """Return `diversity` and `correlation` shift, each from 0 to 1, rounded to 3 digits. Empty for kinds other than
    domain shift, for inputs that are not numbers, and for labels of more than 20 classes.

    The definitions are those of Ye et al. 2022, OoD-Bench (arXiv 2106.03721, section 2.2). With p and q the
    distributions of train and test over features z that tell the two apart:

        diversity shift    1/2 * sum of |p(z) - q(z)| where p(z) q(z) = 0
        correlation shift  1/2 * sum of sqrt(p(z) q(z)) * sum over y of |p(y|z) - q(y|z)| where p(z) q(z) > 0

    The paper learns z with a network and estimates densities with kernels. Here z is linear and discretised, so that an
    audit takes a second. One classifier of train against test is fitted to all rows and one to the rows of each class,
    on one half (ridge regression); z are the first two principal components of their scores, cut into 4 x 4 cells of
    equal mass along each; p and q are counted on the other half. A cell counts as empty in one part if that part's
    share is under 2 % of the other's. The mean square over eight random splits of the same rows and sizes is subtracted
    from each square, because chance adds to a difference like independent noise. Values below 0.1 are within the
    remaining noise. Shifts that no linear score detects are missed.
    """
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
    """Compute diversity and correlation shift, as `measure_domain_shift` defines them, from counts; all arrays have
    shape (rows,)."""
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
