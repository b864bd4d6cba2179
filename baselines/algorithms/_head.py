"""Gradients and Hessians of a task's loss by a linear head, in closed form.

With features z (and a 1 for the bias), outputs W z, e the derivative of a row's loss by its outputs and C the second
one, the gradient of one row by W is e z^T, and its Hessian takes V to C V z z^T. Under cross-entropy e = p - y and
C = diag(p) - p p^T, of probabilities p and the one-hot label y; under the squared error e = 2 (W z - y) and C = 2. So
nothing is differentiated twice: autograd goes once through these formulas, into the features too.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ...core.errors import ModelError
from ..layers.linear import Linear
from ..training.losses import average_over_batch, compute_task_loss, group_by_environment, is_numeric_target
from . import Batch, Build, StepState
from ._penalised import AnnealedPenalty


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


@dataclass(frozen=True)
class Curvature:
    """The second derivative C of each row's loss by its outputs. p: (.., n, outputs), the probabilities of classes; of
    numbers only the shape counts."""

    p: Tensor
    numeric: bool

    def times(self, moved: Tensor) -> Tensor:
        """C v of some changes v of outputs, (.., n, some, outputs) each."""
        if self.numeric:
            return 2 * moved
        p = self.p.unsqueeze(-2)
        return p * (moved - (p * moved).sum(-1, keepdim=True))

    @property
    def diagonal(self) -> Tensor:
        """(.., n, outputs)."""
        return torch.full_like(self.p, 2.0) if self.numeric else self.p * (1 - self.p)


def compute_environment_curvature(outputs: Tensor, batch: Batch) -> Curvature:
    """Of rows (K, E, n / E)."""
    numeric = is_numeric_target(batch.target, outputs)
    return Curvature(group_by_environment(outputs if numeric else outputs.softmax(-1), batch), numeric)


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


class HessianAligned(AnnealedPenalty):
    """Alignment of environments' gradients and curvatures by the linear head.

        R + weight / E x sum_e [ hessian |c_e - c|^2 + gradient |g_e - g|^2 ]

    g_e is the gradient of R_e by the head and c_e a vector that summarises its Hessian; g and c, of the mean risk R,
    are constants. Hemati, Zhang, Estiri and Chen, ICCV 2023 (arXiv:2308.11778). Settings: `hessian` and `gradient`, the
    weights of the two terms, beside those of an annealed penalty."""

    def assemble(self, build: Build) -> Any:
        network = super().assemble(build)
        read_head_shape(network)  # raises before any training
        return network

    @abstractmethod
    def curvatures(
        self, features: Tensor, curvature: Curvature, gradients: Tensor, clock: StepState
    ) -> tuple[Tensor, Tensor]:
        """Of each environment, (K, E, outputs, width), and of the mean risk, (K, outputs, width).

        features: (K, E, n, width). curvature: of rows (K, E, n). gradients: (K, E, outputs, width)."""

    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        features, outputs = compute_features_and_outputs(network, batch)
        z, curvature = group_by_environment(features, batch), compute_environment_curvature(outputs, batch)
        gradients = compute_mean_products(compute_output_gradients(outputs, batch), z)
        each, common = self.curvatures(z, curvature, gradients, clock)
        penalty = self.hyperparameters["hessian"] * _compute_distance(each, common)
        # Environments have equal shares, so the mean risk's gradient is the mean of theirs.
        penalty = penalty + self.hyperparameters["gradient"] * _compute_distance(gradients, gradients.mean(1))
        return average_over_batch(compute_task_loss(outputs, batch.target), batch), penalty


def _compute_distance(each: Tensor, common: Tensor) -> Tensor:
    """The mean over environments of the squared distance of (K, E, ..) from a constant (K, ..): (K,)."""
    return (each - common.detach()[:, None]).flatten(2).square().sum(-1).mean(1)
