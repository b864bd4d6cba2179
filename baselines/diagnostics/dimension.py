"""Two estimates of the dimension of the features of the rows.

`participation_ratio`: (sum l)^2 / sum l^2 over the eigenvalues l of the features' covariance, the number of directions
that a Gaussian of equal variances would need (Gao et al.). `two_nn`: n / sum log(r2 / r1) over the distances r1, r2 of
each row to its nearest two others, the maximum-likelihood form of Facco et al.'s estimator (their equation 6); it
applies to curved manifolds too. Rows that coincide with another count once.
"""

import math

import torch
from torch import Tensor

from . import NotApplicable
from ._subject import Subject

CITATION = (
    "Gao, Trautmann, Yu, Santhanam, Ryu, Shenoy and Ganguli, A theory of multineuronal dimensionality, dynamics "
    "and measurement, bioRxiv 2017; Facco, d'Errico, Rodriguez and Laio, Estimating the intrinsic dimension of "
    "datasets by a minimal neighborhood information, Scientific Reports 2017 (arXiv:1803.06992)"
)
TASKS = ("classification", "sequence")


def measure(subject: Subject) -> dict[str, Tensor]:
    """participation and two_nn, each (K,); NaN if the features of all rows are the same."""
    if len(subject) < 3:
        raise NotApplicable("it needs three training rows")
    features = subject.features
    return {"participation": participation_ratio(features), "two_nn": torch.stack([two_nn(own) for own in features])}


def participation_ratio(features: Tensor) -> Tensor:
    """The participation ratio of the covariance of features (K, n, width): (K,). Both sums are traces."""
    centred = features - features.mean(1, keepdim=True)
    small = min(centred.shape[1:])
    products = centred @ centred.mT if small == centred.shape[1] else centred.mT @ centred
    trace: Tensor = products.diagonal(dim1=1, dim2=2).sum(1)
    return trace.square() / products.square().sum((1, 2))


def two_nn(features: Tensor) -> Tensor:
    """The two-nearest-neighbours dimension of the distinct rows of features (n, width), a scalar."""
    rows = torch.unique(features, dim=0)
    if len(rows) < 3:
        return features.new_tensor(math.nan)
    # From differences: products would lose the distance of close rows.
    distance = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    nearest = distance.fill_diagonal_(math.inf).topk(2, largest=False).values
    return len(rows) / torch.log(nearest[:, 1] / nearest[:, 0]).sum()
