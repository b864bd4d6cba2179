"""Gradients and Hessians of a task's loss by a linear head, in closed form.

With features z (and a 1 for the bias), outputs W z, e the derivative of a row's loss by its outputs and C the second
one, the gradient of one row by W is e z^T, and its Hessian takes V to C V z z^T. Under cross-entropy e = p - y and
C = diag(p) - p p^T, of probabilities p and the one-hot label y; under the squared error e = 2 (W z - y) and C = 2. So
nothing is differentiated twice: autograd goes once through these formulas, into the features too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..layers.linear import Linear
from ..training.losses import group_by_environment, is_numeric_target
from . import Batch


def read_head_shape(network: Any) -> tuple[int, int, int]:
    """Replicas, outputs and width (with the bias) of a network's linear head; `ModelError` if it has another."""
    head = getattr(network, "head", None)
    if not isinstance(head, Linear):
        raise ModelError("the algorithm needs gradients of a linear head, and the network has none: use mlp or cnn")
    replicas, outputs, width = head.weight.shape
    return replicas, outputs, width + (head.bias is not None)


def compute_features_and_outputs(network: Any, batch: Batch) -> tuple[Tensor, Tensor]:
    """Inputs of the network's linear head, with a 1 for the bias if it has one, (K, n, width), and its outputs,
    (K, n, outputs)."""
    features = network.encode(network.embed(*batch.inputs))
    outputs = network.head(features)
    if network.head.bias is not None:
        features = torch.cat([features, torch.ones_like(features[..., :1])], dim=-1)
    return features, outputs


def compute_output_gradients(outputs: Tensor, batch: Batch) -> Tensor:
    """The derivative of each row's loss by its outputs, (K, E, n / E, outputs)."""
    if is_numeric_target(batch.target, outputs):
        return group_by_environment(2 * (outputs - batch.target[..., None]), batch)
    return group_by_environment(
        outputs.softmax(-1) - F.one_hot(batch.target, outputs.shape[-1]).to(outputs.dtype), batch
    )


class Curvature(Protocol):
    """The second derivative C of each row's loss by its outputs."""

    def times(self, moved: Tensor) -> Tensor:
        """C v of some changes v of outputs, (.., n, some, outputs) each."""
        ...

    @property
    def diagonal(self) -> Tensor:
        """(.., n, outputs)."""
        ...


@dataclass(frozen=True)
class SoftmaxCurvature:
    """Of the cross-entropy: diag(p) - p p^T, of probabilities p (.., n, classes)."""

    probabilities: Tensor

    def times(self, moved: Tensor) -> Tensor:
        p = self.probabilities.unsqueeze(-2)
        return p * (moved - (p * moved).sum(-1, keepdim=True))

    @property
    def diagonal(self) -> Tensor:
        return self.probabilities * (1 - self.probabilities)


@dataclass(frozen=True)
class SquaredErrorCurvature:
    """Of the squared error: 2, whatever the number. outputs: (.., n, 1)."""

    outputs: Tensor

    def times(self, moved: Tensor) -> Tensor:
        return 2 * moved

    @property
    def diagonal(self) -> Tensor:
        return torch.full_like(self.outputs, 2.0)


def compute_environment_curvature(outputs: Tensor, batch: Batch) -> Curvature:
    """Of rows (K, E, n / E)."""
    if is_numeric_target(batch.target, outputs):
        return SquaredErrorCurvature(group_by_environment(outputs, batch))
    return SoftmaxCurvature(group_by_environment(outputs.softmax(-1), batch))


def compute_mean_products(left: Tensor, right: Tensor) -> Tensor:
    """The mean over rows of the outer products of (.., n, a) and (.., n, b): (.., a, b)."""
    return left.transpose(-1, -2) @ right / left.shape[-2]


def compute_hessian_products(curvature: Curvature, features: Tensor, directions: Tensor) -> Tensor:
    """The Hessian of the mean loss of rows (.., n) times each of some directions (.., some, outputs, width)."""
    flat = directions.flatten(-3, -2)
    moved = features @ flat.transpose(-1, -2)
    moved = moved.view(*moved.shape[:-1], *directions.shape[-3:-1])
    products = compute_mean_products(curvature.times(moved).flatten(-2), features)
    return products.view(*products.shape[:-2], *directions.shape[-3:])
