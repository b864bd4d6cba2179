"""Alignment of environments' gradients and curvatures by the linear head.

    R + weight / E x sum_e [ hessian |c_e - c|^2 + gradient |g_e - g|^2 ]

g_e is the gradient of R_e by the head and c_e a vector that tells of its Hessian; g and c, of the mean risk R, are
constants.
Hemati, Zhang, Estiri and Chen, ICCV 2023 (arXiv:2308.11778).
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from torch import Tensor

from ..training.algorithm import Build, Clock
from ..training.losses import mean, split, task_loss
from ..training.sampler import Batch
from ._head import (
    Curvature,
    curvature_by_environment,
    errors_by_environment,
    features_and_outputs,
    mean_products,
    of_head,
)
from ._penalised import Annealed


class HessianAligned(Annealed):
    """Settings: `hessian` and `gradient`, the weights of the two terms, beside those of an annealed penalty."""

    def assemble(self, build: Build) -> Any:
        network = super().assemble(build)
        of_head(network)  # refused before anything is spent
        return network

    @abstractmethod
    def curvatures(
        self, features: Tensor, curvature: Curvature, gradients: Tensor, clock: Clock
    ) -> tuple[Tensor, Tensor]:
        """Of each environment, (K, E, outputs, width), and of the mean risk, (K, outputs, width).

        features: (K, E, n, width). curvature: of rows (K, E, n). gradients: (K, E, outputs, width)."""

    def terms(self, network: Any, batch: Batch, clock: Clock) -> tuple[Tensor, Tensor]:
        features, outputs = features_and_outputs(network, batch)
        z, curvature = split(features, batch), curvature_by_environment(outputs, batch)
        gradients = mean_products(errors_by_environment(outputs, batch), z)
        each, common = self.curvatures(z, curvature, gradients, clock)
        penalty = self.hyperparameters["hessian"] * _distance(each, common)
        # Environments have equal shares, so the mean risk's gradient is the mean of theirs.
        penalty = penalty + self.hyperparameters["gradient"] * _distance(gradients, gradients.mean(1))
        return mean(task_loss(outputs, batch.target), batch), penalty


def _distance(each: Tensor, common: Tensor) -> Tensor:
    """The mean over environments of the squared distance of (K, E, ..) from a constant (K, ..): (K,)."""
    return (each - common.detach()[:, None]).flatten(2).square().sum(-1).mean(1)
