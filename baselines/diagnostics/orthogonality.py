"""Orthogonality of factors: whether each factor of the input has directions of its own in the features.

    f(x) = b + sum_i v_i(x_i)    by least squares;    cosine: the mean of |cos(v_i(a), v_j(b))| over i != j and all a, b

with the vectors of each factor centred over its values: 0 where the factors' directions are orthogonal, 1 where all lie
on a line, and about sqrt(2 / (pi width)) for random ones. It says nothing of how much the factors explain: that is
`factorisation`, which has the same factors. The vectors of a text are those of its words. It does not apply where the
rows do not determine the vectors.
"""

import torch
from torch import Tensor

from . import NotApplicable
from ._subject import Subject
from .factorisation import list_factors, make_design_matrix

CITATION = (
    "Compositional Generalization Requires Linear, Orthogonal Representations in Vision Embedding Models; Trager, "
    "Perera, Zancato, Achille, Bhatia and Soatto, Linear Spaces of Meanings, ICCV 2023 (arXiv:2302.14383)"
)
TASKS = ("classification", "sequence")


def measure(subject: Subject) -> dict[str, Tensor]:
    """cosine (K,); NaN if the vectors of a factor are all the same."""
    if subject.task == "sequence":
        counts = make_design_matrix(subject)
        counts = counts[:, counts.std(0) > 0]
        return {"cosine": measure_cosine(subject.features, counts, [1] * counts.shape[1])}
    factors = list_factors(subject)
    sizes = [len(torch.unique(factor)) for factor in factors]
    return {"cosine": measure_cosine(subject.features, make_design_matrix(subject), sizes)}


def measure_cosine(features: Tensor, design: Tensor, sizes: list[int]) -> Tensor:
    """The mean absolute cosine between vectors of different factors, (K,).

    features: (K, n, width). design: (n, columns), the columns of one factor after the other. sizes: the columns of each
    factor; a factor of several has exactly one 1 in each row, so that its vectors are centred."""
    if len(sizes) < 2:
        raise NotApplicable("it needs two factors")
    centred = design - design.mean(0)
    free = sum(size - 1 if size > 1 else 1 for size in sizes)
    if int(torch.linalg.matrix_rank(centred)) < free:
        raise NotApplicable(f"{len(design)} training rows do not determine {free} vectors of factors")
    vectors = torch.linalg.pinv(centred) @ (features - features.mean(1, keepdim=True))
    parts = [
        part - part.mean(1, keepdim=True) if part.shape[1] > 1 else part for part in torch.split(vectors, sizes, dim=1)
    ]
    unit = torch.cat(parts, dim=1)
    norms = unit.norm(dim=2, keepdim=True)
    # A vector that is zero up to rounding has no direction.
    unit = torch.where(norms > 1e-9 * norms.amax((1, 2), keepdim=True), unit / norms, torch.nan)
    factor = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes)).to(design.device)
    return (unit @ unit.mT).abs()[:, factor[:, None] != factor].mean(1)
