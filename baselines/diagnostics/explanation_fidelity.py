"""How well local linear surrogates explain a network, and how unequally by group.

For a row x, LIME (Ribeiro et al., section 3) draws perturbations z around it, weights them by

    pi(z) = exp(- d(x, z)^2 / s^2),    s = 0.75 sqrt(D)

and explains the network's output f by the linear g that minimises sum_z pi(z) (f(z) - g(z))^2. Its fidelity is the
share of the output's weighted variance that g explains, R^2: 1 for a linear network. Here z is normal around x with the
standard deviation that each of the D numbers has in the rows, the unit of d; categories stay; f is the logit of the
class predicted for x, less the mean logit. For f = a^2, a one of the numbers in this unit, the weighted perturbations
are normal with variance v = 1 / (1 + 2 / s^2), and R^2 = 2 a^2 / (2 a^2 + v).

Groups are the environments of training, such as the values of a sensitive attribute. Balagopalan et al. compare
fidelities between groups; Mhasawade et al. ask which shifts between groups make them differ. They explain
probabilities; R^2 of probabilities is not defined where they do not vary.
"""

import math

import torch
from torch import Tensor

from ...core.draws import UNIT, draw_normal_units
from . import NotApplicable
from ._subject import Subject

CITATION = (
    "Ribeiro, Singh and Guestrin, Why Should I Trust You? Explaining the Predictions of Any Classifier, KDD 2016 "
    "(arXiv:1602.04938); Balagopalan et al., The Road to Explainability is Paved with Bias: Measuring the Fairness of "
    "Explanations, FAccT 2022 (arXiv:2205.03295); Mhasawade, Rahman, Haskell-Craig and Chunara, Understanding "
    "Disparities in Post Hoc Machine Learning Explanation, 2024 (arXiv:2401.14539)"
)
TASKS = ("classification",)
PERTURBATIONS = 512
"""Perturbations of each row."""
BREADTH = 0.75
"""The width of the weights over sqrt(D), as in the authors' package `lime`."""


def measure(subject: Subject) -> dict[str, Tensor]:
    """mean: the mean fidelity of all rows; lowest: of the group with the lowest mean; disparity: the largest of the
    groups' means less the smallest; each (K,)."""
    groups = subject.groups
    fidelity = compute_fidelities(subject)
    means = torch.stack([fidelity[:, groups == group].mean(1) for group in torch.unique(groups)])
    return {"mean": fidelity.mean(1), "lowest": means.amin(0), "disparity": means.amax(0) - means.amin(0)}


def compute_fidelities(subject: Subject) -> Tensor:
    """The fidelity of the explanation of each row, (K, n) float64; 1 where the output is constant. `NotApplicable` if
    the inputs are not numbers, or are too many for the perturbations."""
    predicted = subject.logits().argmax(2)
    if len(subject.data.inputs) != 2 or not subject.data.inputs[1].is_floating_point():
        raise NotApplicable("its inputs are not rows of numbers")
    categories, numbers = subject.data.inputs
    deviation = numbers.double().std(0)
    varied = torch.nonzero(deviation > 0)[:, 0]
    if not 0 < len(varied) < PERTURBATIONS // 4:
        raise NotApplicable(f"{len(varied)} numbers vary: local surrogates are for 1 to {PERTURBATIONS // 4 - 1}")
    return torch.stack(
        [
            _compute_row_fidelity(subject, categories[row], numbers[row], deviation, varied, predicted[:, row], row)
            for row in range(len(subject))
        ],
        dim=1,
    )


@torch.no_grad()
def _compute_row_fidelity(
    subject: Subject,
    categories: Tensor,
    numbers: Tensor,
    deviation: Tensor,
    varied: Tensor,
    predicted: Tensor,
    row: int,
) -> Tensor:
    """The fidelity of the explanation of one row with categories (fields,) and numbers (width,): (K,)."""
    width = len(varied)
    drawn = draw_normal_units(f"explanation_fidelity/{row}", PERTURBATIONS * width) / UNIT
    moved = torch.from_numpy(drawn).to(deviation).reshape(PERTURBATIONS, width)
    inputs = numbers.double().repeat(PERTURBATIONS, 1)
    inputs[:, varied] += moved * deviation[varied]
    stack, replicas = subject.stack, subject.replicas
    logits = stack.algorithm.logits(
        stack.network,
        categories.expand(replicas, PERTURBATIONS, -1),
        inputs.to(numbers).expand(replicas, PERTURBATIONS, -1),
    ).double()
    own = logits.gather(2, predicted[:, None, None].expand(-1, PERTURBATIONS, 1))[..., 0] - logits.mean(2)
    root = torch.exp(-moved.square().sum(1) / (BREADTH * math.sqrt(width)) ** 2 / 2)
    basis = torch.linalg.qr(root[:, None] * torch.cat([torch.ones_like(moved[:, :1]), moved], dim=1)).Q
    # The first column spans the constant, so that what remains without it is the weighted variance.
    return torch.stack([_compute_explained_share(root * values, basis) for values in own])


def _compute_explained_share(values: Tensor, basis: Tensor) -> Tensor:
    """R^2 of values (m,) by an orthonormal basis (m, D + 1) whose first column is the constant."""
    centred = values - basis[:, 0] * (basis[:, 0] @ values)
    total = centred.square().sum()
    residual = (centred - basis @ (basis.T @ centred)).square().sum()
    constant = total <= 1e-12 * values.square().sum()
    return torch.where(constant, torch.ones_like(total), 1 - residual / total)
