"""SAND-mask: gradient coordinates are weighted by the agreement of the environments' gradients in sign and size.

    g_k = m_k mean_e g_e,k,  m_k = max(0, tanh(k (|mean_e sign g_e,k| - agreement) / var_e g_e,k))

Shahtalebi et al., 2021, as in DomainBed's code: the variance is the sample's, and each parameter's g is then divided by
the mean of its mask. DomainBed's default agreement is 1, which no coordinate exceeds: with it no parameter ever moves.
Here it is the middle of DomainBed's range.
"""

from typing import Any

from torch import Tensor

from ._environments import MaskedGradient, average_masked_gradients

KIND = "domain"
CITATION = (
    "Shahtalebi et al., SAND-mask: an enhanced gradient masking strategy for the discovery of invariances in domain "
    "generalization, 2021 (arXiv:2106.02266)"
)
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"agreement": 0.5, "steepness": 10.0, "batch_size": 32}
"""agreement: tau, which |mean sign| must exceed, 0 .. 1. steepness: k (DomainBed's default)."""
SEARCH: dict[str, Any] = {"agreement": ["uniform", 0.0, 1.0], "steepness": ["log10", -3, 5]}


def mask_gradients(each: Tensor, agreement: Tensor, steepness: Tensor) -> Tensor:
    """The gradients of one parameter in every environment, (K, E, ..), as one to follow, (K, ..)."""
    ahead = each.sign().mean(1).abs() - agreement.view(-1, *[1] * (each.ndim - 2))
    # Equal gradients have no variance: whatever agrees enough is followed whole.
    variance = each.var(1).clamp(min=1e-30)
    mask = (steepness.view(-1, *[1] * (each.ndim - 2)) * ahead / variance).tanh().clamp(min=0)
    return average_masked_gradients(each, mask)


class Algorithm(MaskedGradient):
    def masked(self, each: Tensor) -> Tensor:
        return mask_gradients(each, self.hyperparameters["agreement"], self.hyperparameters["steepness"])
