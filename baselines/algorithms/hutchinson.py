"""Hessian alignment by Hutchinson's diagonal: the diagonals of the environments' Hessians are matched.

    R + weight / E x sum_e [ hessian |diag H_e - diag H|^2 + gradient |g_e - g|^2 ]

with diag H estimated as the mean over random signs s of s * (H s) (Bekas, Kokiopoulou and Saad, Applied Numerical
Mathematics 2007). g and H, of the mean risk R, are constants. `samples = 0` uses the diagonal itself, which for a
linear head is the mean over rows of p (1 - p) z^2, or of 2 z^2 where labels are numbers: what the estimate tends to, at
a fraction of its cost.

Released code: signs are drawn anew for every environment, so that the noise of the estimates is penalised as a
difference between environments; here all environments and the mean share each step's signs.
"""

from typing import Any

import torch
from torch import Tensor

from ..replicas.rng import draw_uniform
from . import StepState
from ._head import Curvature, HessianAligned, compute_hessian_products, compute_mean_products

KIND = "domain"
CITATION = (
    "Hemati, Zhang, Estiri and Chen, Understanding Hessian Alignment for Domain Generalization, ICCV 2023 "
    "(arXiv:2308.11778)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "hessian": 1e-3,
    "gradient": 5e-3,
    "samples": 300,
    "penalty": 1.0,
    "penalty_before": 1.0,
    "anneal_percent": 0,
    "restart": True,
    "rescale": False,
    "l2": 0.0,
    "batch_size": 32,
}
"""hessian and gradient: the weights of the two terms, the authors' for DomainBed. samples: random signs a step, 0 for
the exact diagonal. penalty: of both terms. The others: see `_penalised.py`."""
SEARCH: dict[str, Any] = {"hessian": ["log10", 1, 4], "gradient": ["log10", 2, 6]}

TOGETHER = 32
"""Samples whose products are computed at once, to limit memory."""


def compute_exact_diagonal(curvature: Curvature, features: Tensor) -> Tensor:
    """The Hessian's diagonal over rows (.., n): (.., outputs, width)."""
    return compute_mean_products(curvature.diagonal, features.square())


def estimate_diagonal(curvature: Curvature, features: Tensor, signs: Tensor) -> Tensor:
    """The same from random signs (K, samples, outputs, width), for environments (K, E, n, ..)."""
    total = torch.zeros_like(signs[:, :1])
    for some in torch.split(signs, TOGETHER, dim=1):
        directions = some[:, None]
        total = total + (directions * compute_hessian_products(curvature, features, directions)).sum(2)
    return total / signs.shape[1]


class Algorithm(HessianAligned):
    def curvatures(
        self, features: Tensor, curvature: Curvature, gradients: Tensor, clock: StepState
    ) -> tuple[Tensor, Tensor]:
        if samples := self.hyperparameters["samples"]:
            drawn = draw_uniform(clock.draw("signs"), (samples, *gradients.shape[2:]), features.dtype)
            each = estimate_diagonal(curvature, features, torch.where(drawn < 0.5, -1.0, 1.0).to(drawn))
        else:
            each = compute_exact_diagonal(curvature, features)
        # Environments have equal shares, so the mean risk's diagonal is the mean of theirs.
        return each, each.mean(1)
