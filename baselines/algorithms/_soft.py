"""Targets that are probabilities instead of classes."""

from __future__ import annotations

from torch import Tensor


def soft_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """-sum_j target_j log p_j: logits and target (K, n, .., classes) to (K, n, ..)."""
    return -(target * logits.log_softmax(-1)).sum(-1)


def sharpen_probabilities(probabilities: Tensor, temperature: Tensor) -> Tensor:
    """p_j^(1 / T) over its sum (Berthelot et al., NeurIPS 2019, arXiv:1905.02249, equation 7); T as `probabilities`."""
    raised = probabilities ** (1 / temperature)
    return raised / raised.sum(-1, keepdim=True)
