"""Linear factorisation: how well features are a sum of one vector for each factor of the input.

    R^2 of  f(x) = b + sum_i v_i(x_i)

by least squares, pooled over the width: 1 where each factor has a direction of its own, whatever the others are. The
factors are the categories of the input if it has several; for a text, how often each word occurs in it; else the
label and the environment, unless each environment has rows of one class only. `adjusted` corrects for the number of
free vectors (1 - (1 - R^2) (n - 1) / (n - rank)): features that are independent of the factors have about 0 there, and
more than 0 in `r2`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ..encoding.encoding import PAD
from . import NotApplicable
from ._subject import Subject

CITATION = (
    "Trager, Perera, Zancato, Achille, Bhatia and Soatto, Linear Spaces of Meanings: Compositional Structures in "
    "Vision-Language Models, ICCV 2023 (arXiv:2302.14383); Andreas, Measuring Compositionality in Representation "
    "Learning, ICLR 2019 (arXiv:1902.07181)"
)
TASKS = ("classification", "sequence")


def measure(subject: Subject) -> dict[str, Tensor]:
    """r2 and adjusted, each (K,); NaN if the features of all rows are the same."""
    return compute_explained_variance(subject.features, make_design_matrix(subject))


def make_design_matrix(subject: Subject) -> Tensor:
    """The factors of each row as numbers, (n, columns) float64."""
    if subject.task == "sequence":
        source = subject.data.inputs[0]
        counts = F.one_hot(source, int(source.max()) + 1).sum(1).double()
        counts[:, PAD] = 0
        return counts
    return _encode_one_hot(*list_factors(subject))


def list_factors(subject: Subject) -> list[Tensor]:
    """The value of each factor in each row, (n,) each, of rows that are not texts."""
    categories = subject.data.inputs[0]
    if categories.shape[1] > 1:
        return list(categories.T)
    classes, groups = subject.classes, subject.groups
    if torch.unique(torch.stack([classes, groups]), dim=1).shape[1] == len(torch.unique(groups)):
        raise NotApplicable("each environment has one class, so that they are no two factors")
    return [classes, groups]


def _encode_one_hot(*factors: Tensor) -> Tensor:
    return torch.cat([F.one_hot(torch.unique(factor, return_inverse=True)[1]) for factor in factors], dim=1).double()


def compute_explained_variance(features: Tensor, factors: Tensor) -> dict[str, Tensor]:
    """R^2, plain and adjusted, of features (K, n, width) as affine functions of factors (n, columns)."""
    rows = len(factors)
    left, sizes, _ = torch.linalg.svd(factors - factors.mean(0), full_matrices=False)
    basis = left[:, sizes > sizes.max() * max(factors.shape) * torch.finfo(sizes.dtype).eps]
    rank = basis.shape[1] + 1
    if rank >= rows:
        raise NotApplicable(f"{rows} training rows are too few for {rank} vectors of factors")
    centred = features - features.mean(1, keepdim=True)
    total = centred.square().sum((1, 2))
    r2 = (basis.T @ centred).square().sum((1, 2)) / total
    return {"r2": r2, "adjusted": 1 - (1 - r2) * (rows - 1) / (rows - rank)}
