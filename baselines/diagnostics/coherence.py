"""Gradient coherence: how much the gradients of single rows agree.

    alpha = |E g|^2 / E |g|^2

over the gradients g of the n rows' losses with respect to all parameters: 1 where all are the same, 1 / n where they
are orthogonal, as random ones nearly are. `rows_helped` is n alpha, the m-coherence of n rows: how many rows a step
along one row's gradient helps on average, to first order. Chatterjee and Zielinski, section 2.
"""

import torch
from torch import Tensor

from ._subject import Subject

CITATION = "Chatterjee and Zielinski, On the Generalization Mystery in Deep Learning, 2022 (arXiv:2203.10036)"
TASKS = ("classification", "sequence")


def measure(subject: Subject) -> dict[str, Tensor]:
    """alpha and rows_helped, each (K,); NaN if all gradients are 0."""
    alphas = []
    for replica in range(subject.replicas):
        total, squares = torch.zeros(()), torch.zeros(())
        for some in subject.row_gradients(replica):
            total, squares = total.to(some) + some.sum(0), squares.to(some) + some.square().sum()
        alphas.append(total.square().sum() / (len(subject) * squares))
    alpha = torch.stack(alphas)
    return {"alpha": alpha, "rows_helped": len(subject) * alpha}
