"""Similarity of the gradients of the training environments: the mean cosine over all pairs of them.

    2 / (E (E - 1)) sum_{a < b} <g_a, g_b> / (|g_a| |g_b|)

over the gradients g of the environments' mean losses with respect to all parameters: 1 where all have the same
direction, negative where they conflict. Fish maximises it (there as inner products, equation 4), and the penalties of
Fishr and AND-mask use it.
"""

import torch
from torch import Tensor

from ._subject import Subject

CITATION = "Shi et al., Gradient Matching for Domain Generalization, ICLR 2022 (arXiv:2104.09937)"
TASKS = ("classification", "sequence")


def measure(subject: Subject) -> dict[str, Tensor]:
    """cosine, (K,); NaN if an environment's gradient is 0. environments, (K,): how many were compared."""
    groups = subject.groups
    names = torch.unique(groups)
    total = torch.zeros(())
    for name in names:
        gradient = subject.gradient(torch.nonzero(groups == name)[:, 0])
        total = total.to(gradient) + gradient / gradient.norm(dim=1, keepdim=True)
    count = len(names)
    # |sum of unit vectors|^2 = E + the sum over ordered pairs.
    cosine = (total.square().sum(1) - count) / (count * (count - 1))
    return {"cosine": cosine, "environments": torch.full_like(cosine, count)}
