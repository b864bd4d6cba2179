"""Alignment of environments' gradients and curvatures by the linear head.

    R + weight / E x sum_e [ hessian |c_e - c|^2 + gradient |g_e - g|^2 ]

g_e is the gradient of R_e by the head and c_e a vector that summarises its Hessian; g and c, of the mean risk R, are
constants.
Hemati, Zhang, Estiri and Chen, ICCV 2023 (arXiv:2308.11778).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from torch import Tensor

from ..training.losses import average_over_batch, compute_task_loss, group_by_environment
from . import Batch, Build, StepState
from ._head import (
    Curvature,
    compute_environment_curvature,
    compute_features_and_outputs,
    compute_mean_products,
    compute_output_gradients,
    read_head_shape,
)
from ._penalised import AnnealedPenalty


class HessianAligned(AnnealedPenalty):
    """Settings: `hessian` and `gradient`, the weights of the two terms, beside those of an annealed penalty."""

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
