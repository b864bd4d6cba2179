"""Fishr: the variances of the gradients of rows are matched between environments.

    R + weight x mean_e mean_k (v_e,k - mean_e v_e,k)^2

v_e,k is the variance over the rows of environment e of their gradients by parameter k of the linear head, smoothed over
steps. A row's gradient is (p - y) z^T, and 2 (o - y) z^T where y is a number and o the output, so its mean and mean
square are two products of matrices, and no package for gradients of single rows is needed. Numbers are in the units of
training (`encoding/targets.py`).

Released code: the smoothed variance is divided by 1 - ema, so that the gradient into it does not shrink; in the long
run it is 1 / (1 - ema) times a variance, which the default weight assumes. It is smoothed before the switch, too.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import average_over_batch, average_per_replica, compute_task_loss, group_by_environment
from . import Batch, Build, StepState
from ._head import compute_features_and_outputs, compute_mean_products, compute_output_gradients, read_head_shape
from ._penalised import AnnealedPenalty

KIND = "domain"
CITATION = (
    "Rame, Dancette and Cord, Fishr: Invariant Gradient Variances for Out-of-Distribution Generalization, ICML 2022 "
    "(arXiv:2109.02934)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "penalty": 1000.0,
    "penalty_before": 0.0,
    "anneal_percent": 30,
    "restart": True,
    "rescale": False,
    "l2": 0.0,
    "ema": 0.95,
    "batch_size": 32,
}
"""DomainBed's (penalty 1,000 after 1,500 of 5,001 steps). ema: of the variances over steps. The others: see
`_penalised.py`."""
SEARCH: dict[str, Any] = {
    "penalty": ["log10", 1, 4],
    "anneal_percent": ["choice", 0, 20, 40, 60, 80],
    "ema": ["uniform", 0.9, 0.99],
}
LIMITS = {"ema": "at least 0 and below 1"}


def compute_gradient_variances(features: Tensor, errors: Tensor) -> Tensor:
    """The variance over rows of the head's gradients: features (.., n, width) and the derivatives of losses by
    outputs (.., n, outputs) to (.., outputs, width)."""
    return compute_mean_products(errors.square(), features.square()) - compute_mean_products(errors, features).square()


class Algorithm(AnnealedPenalty):
    smoothed: Tensor
    _next: Tensor | None = None

    def assemble(self, build: Build) -> Any:
        network = super().assemble(build)
        replicas, *sizes = read_head_shape(network)
        shape = (replicas, self.about.environments, *sizes)
        device = self.about.data.lengths.device
        self.register_buffer("smoothed", torch.zeros(shape, dtype=self.hyperparameters.dtype, device=device))
        return network

    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        features, outputs = compute_features_and_outputs(network, batch)
        variances = compute_gradient_variances(
            group_by_environment(features, batch), compute_output_gradients(outputs, batch)
        )
        ema = self.hyperparameters.on("ema", variances)
        smoothed = ema * self.smoothed + (1 - ema) * variances
        self._next = smoothed.detach()
        corrected = smoothed / (1 - ema)
        deviations = corrected - corrected.mean(1, keepdim=True)
        return average_over_batch(compute_task_loss(outputs, batch.target), batch), average_per_replica(
            deviations.square()
        )

    def after(self, network: Any, clock: StepState) -> None:
        assert self._next is not None
        self.smoothed, self._next = self._next, None
