"""Linear probes of a domain split: how well they separate the domains, and how much accuracy they lose under shift."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...core.draws import draw_bits
from .features import ROWS, Matrix, compute_features, fit_ridge
from .labels import encode_classes
from .parted import PartedRows

_CLASSES, _COLUMNS = 100, 1024


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
    inputs = compute_features(rows, both, _COLUMNS)
    half = draw_bits("probe", rows.row_ids[both]) % np.uint64(2) == 0
    domain = np.arange(len(both)) >= len(train)
    if inputs is None or any(not (half & side).any() or not (~half & side).any() for side in (domain, ~domain)):
        return {}
    tell = fit_ridge(inputs[half], domain[half, None].astype(np.float64))
    results = {"domain_auroc": round(auroc(tell(inputs[~half])[:, 0], domain[~half]), 3)}
    labelled = encode_classes(rows)
    if labelled is None or len(labelled[1]) > _CLASSES:
        return results
    label = labelled[0][both]
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
