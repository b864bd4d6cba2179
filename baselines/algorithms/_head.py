"""Gradients and Hessians of the cross-entropy by a linear head, in closed form.

With features z (and a 1 for the bias), logits W z, probabilities p and the one-hot label y, the gradient of one row by
W is (p - y) z^T, and its Hessian takes V to (diag(p) - p p^T) V z z^T. So nothing is differentiated twice: autograd
goes once through these formulas, into the features too.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..layers.linear import Linear
from ..training.losses import split
from ..training.sampler import Batch


def of_head(network: Any) -> tuple[int, int, int]:
    """Replicas, classes and width (with the bias) of a network's linear head; `ModelError` if it has another."""
    head = getattr(network, "head", None)
    if not isinstance(head, Linear):
        raise ModelError("the algorithm looks at gradients of a linear head, and the network has none: use mlp or cnn")
    replicas, classes, width = head.weight.shape
    return replicas, classes, width + (head.bias is not None)


def features_and_logits(network: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """What the network's linear head is given, with a 1 for the bias where it has one, (K, n, width), and the logits
    that it gives, (K, n, classes)."""
    features = network.encode(network.embed(*batch.inputs))
    logits = network.head(features)
    if network.head.bias is not None:
        features = torch.cat([features, torch.ones_like(features[..., :1])], dim=-1)
    return features, logits


def errors_by_environment(logits: Tensor, batch: Batch) -> Tensor:
    """p - y of each row, (K, E, n / E, classes)."""
    return split(logits.softmax(-1) - F.one_hot(batch.target, logits.shape[-1]).to(logits.dtype), batch)


def mean_products(left: Tensor, right: Tensor) -> Tensor:
    """The mean over rows of the outer products of (.., n, a) and (.., n, b): (.., a, b)."""
    return left.transpose(-1, -2) @ right / left.shape[-2]


def hessian_products(probabilities: Tensor, features: Tensor, directions: Tensor) -> Tensor:
    """The Hessian of the mean loss of rows (.., n) times each of some directions (.., some, classes, width)."""
    flat = directions.flatten(-3, -2)
    moved = features @ flat.transpose(-1, -2)
    moved = moved.view(*moved.shape[:-1], *directions.shape[-3:-1])
    p = probabilities.unsqueeze(-2)
    products = mean_products((p * (moved - (p * moved).sum(-1, keepdim=True))).flatten(-2), features)
    return products.view(*products.shape[:-2], *directions.shape[-3:])
