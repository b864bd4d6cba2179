"""AND-mask: a step along those coordinates alone on whose sign the environments' gradients agree.

    g_k = mean_e g_e,k  where |mean_e sign g_e,k| >= agreement, else 0

As in the authors' code, each parameter's g is then divided by the share of its coordinates that are left, and with
momentum a masked coordinate still moves.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from ._masked_gradient import MaskedGradient, followed

KIND = "domain"
CITATION = (
    "Parascandolo, Neitz, Orvieto, Gresele and Schoelkopf, Learning Explanations that are Hard to Vary, ICLR 2021 "
    "(arXiv:2009.00329)"
)
TASKS = ("classification", "sequence")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"agreement": 1.0, "batch_size": 32}
"""agreement: tau, the least |mean sign| of a coordinate that moves, 0 .. 1; DomainBed's default."""
SEARCH: dict[str, Any] = {"agreement": ["uniform", 0.5, 1.0]}

EPSILON = 1e-6
"""Below what a sum of signs can differ by, above its rounding: 8 environments against 2 meet an agreement of .6."""


def masked(each: Tensor, agreement: Tensor) -> Tensor:
    """The gradients of one parameter in every environment, (K, E, ..), as one to follow, (K, ..)."""
    least = agreement.view(-1, *[1] * (each.ndim - 2)) - EPSILON
    return followed(each, (each.sign().mean(1).abs() >= least).to(each.dtype))


class Algorithm(MaskedGradient):
    called = "and_mask"

    def masked(self, each: Tensor) -> Tensor:
        return masked(each, self.hyperparameters["agreement"])
