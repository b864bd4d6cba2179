"""Hessian alignment by Hessian-gradient products: the Hessians of the environments' losses are matched along their
gradients.

    R + weight / E x sum_e [ hessian |H_e g_e - H g|^2 + gradient |g_e - g|^2 ]

g_e and H_e are the gradient and the Hessian of R_e by the linear head; g and H, of the mean risk R, are constants. The
released code finds H_e g_e as |g_e| grad |g_e|, whose gradient is NaN where g_e is 0; the product in closed form has
no such point. Its ColoredMNIST script sums over environments and weights both terms alike.
"""

from typing import Any

from torch import Tensor

from . import StepState
from ._head import Curvature, HessianAligned, compute_hessian_products

KIND = "domain"
CITATION = (
    "Hemati, Zhang, Estiri and Chen, Understanding Hessian Alignment for Domain Generalization, ICCV 2023 "
    "(arXiv:2308.11778)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "hessian": 1e-4,
    "gradient": 5e-3,
    "penalty": 1.0,
    "penalty_before": 1.0,
    "anneal_percent": 0,
    "restart": True,
    "rescale": False,
    "l2": 0.0,
    "batch_size": 32,
}
"""hessian and gradient: the weights of the two terms, the authors' for DomainBed. penalty: of both. The others: see
`_penalised.py`."""
SEARCH: dict[str, Any] = {"hessian": ["log10", -5, -3], "gradient": ["log10", -3, -1]}


class Algorithm(HessianAligned):
    def curvatures(
        self, features: Tensor, curvature: Curvature, gradients: Tensor, clock: StepState
    ) -> tuple[Tensor, Tensor]:
        each = compute_hessian_products(curvature, features, gradients[:, :, None])[:, :, 0]
        # The mean risk's Hessian, by its gradient: the mean of all environments' products with that one direction.
        common = compute_hessian_products(curvature, features, gradients.mean(1)[:, None, None])[:, :, 0].mean(1)
        return each, common
