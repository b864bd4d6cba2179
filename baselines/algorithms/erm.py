"""Empirical risk minimisation: the mean loss over the training rows, each in proportion to its weight.

Vapnik, Statistical Learning Theory, 1998. The squared loss on one-hot targets is what the literature on modular
arithmetic trains with (Doshi et al., ICLR 2024, arXiv:2310.13061).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from ..encoding import PAD

SETTINGS: dict[str, Any] = {"loss": "cross-entropy", "label_smoothing": 0.0}
"""loss: `cross-entropy`, or `squared` (mean over rows and classes of the squared error to the one-hot label)."""


def objective(logits: Tensor, target: Tensor, weight: Tensor | None, settings: Mapping[str, Any]) -> Tensor:
    """A scalar: the mean loss over all targets.

    Logits (n, classes) with targets (n,); or (n, T, words) with (n, T), where PAD is no target. `weight` (n,)
    weights the rows of a classification task; None weighs them alike.
    """
    if settings["loss"] == "squared":
        errors = (logits - F.one_hot(target, logits.shape[-1]).to(logits.dtype)).square().mean(dim=-1)
    else:
        errors = F.cross_entropy(
            logits.flatten(0, -2),
            target.flatten(),
            reduction="none",
            label_smoothing=settings["label_smoothing"],
        ).view(target.shape)
    if target.ndim == 2:
        real = (target != PAD).to(errors.dtype)
        real = real if weight is None else real * weight[:, None]
        return (errors * real).sum() / real.sum()
    return errors.mean() if weight is None else (errors * weight).sum() / weight.sum()
