"""AND-mask: gradient steps only along coordinates on whose sign the environments' gradients agree.

    g_k = mean_e g_e,k  where |mean_e sign g_e,k| >= agreement, else 0

As in the authors' code, each parameter's g is then divided by the share of its coordinates that are left, and with
momentum a masked coordinate still moves. In the form of the linear unit tests (Aubin et al. 2021, arXiv:2102.10867) it
is not, and each environment's gradient by a weight matrix first has length 1, so that all environments count alike.
"""

from typing import Any

from torch import Tensor

from ._environments import MaskedGradient, average_masked_gradients

KIND = "domain"
CITATION = (
    "Parascandolo, Neitz, Orvieto, Gresele and Schoelkopf, Learning Explanations that are Hard to Vary, ICLR 2021 "
    "(arXiv:2009.00329)"
)
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"agreement": 1.0, "unit_gradients": False, "batch_size": 32}
"""agreement: tau, the least |mean sign| of a coordinate that moves, 0 .. 1; DomainBed's default. unit_gradients: the
form of the linear unit tests."""
SEARCH: dict[str, Any] = {"agreement": ["uniform", 0.5, 1.0]}

EPSILON = 1e-6
"""Below what a sum of signs can differ by, above its rounding: 8 environments against 2 meet an agreement of .6."""


def compute_sign_mask(each: Tensor, agreement: Tensor) -> Tensor:
    """1 where the signs of gradients in every environment, (K, E, ..), agree, else 0: (K, ..)."""
    least = agreement.view(-1, *[1] * (each.ndim - 2)) - EPSILON
    return (each.sign().mean(1).abs() >= least).to(each.dtype)


def mask_gradients(each: Tensor, agreement: Tensor) -> Tensor:
    """The gradients of one parameter in every environment, (K, E, ..), as one to follow, (K, ..)."""
    return average_masked_gradients(each, compute_sign_mask(each, agreement))


def mask_unit_gradients(each: Tensor, agreement: Tensor) -> Tensor:
    """The same, those of a matrix first divided by their lengths, and nothing made up for."""
    if each.ndim > 3:
        each = each / each.flatten(2).norm(dim=2).clamp(min=1e-30).view(*each.shape[:2], *[1] * (each.ndim - 2))
    return each.mean(1) * compute_sign_mask(each, agreement)


class Algorithm(MaskedGradient):
    def masked(self, each: Tensor) -> Tensor:
        form = mask_unit_gradients if self.hyperparameters["unit_gradients"] else mask_gradients
        return form(each, self.hyperparameters["agreement"])
