"""CausIRL with CORAL: the means and covariances of the features of two random mixtures of environments are aligned.

    mean_e R_e + weight x [ |mu_1 - mu_2|^2 / d + |C_1 - C_2|^2 / d^2 ]

Chevalley, Bunne, Krause and Bauer, 2022, in the form of DomainBed's `CausIRL_CORAL`: of each environment's
rows in a batch the first s_e go to one mixture and the others to the other, s_e uniform on 0 .. n - 1, drawn anew in
every step. A mixture of fewer than two rows is compared with nothing.
"""

from typing import Any

import torch
from torch import Tensor

from ..replicas.rng import draw_uniform
from ..training.losses import average_by_environment, compute_task_loss
from . import Batch, StepState
from ._penalised import PenalisedRisk, check_spread

KIND = "domain"
CITATION = (
    "Chevalley, Bunne, Krause and Bauer, Invariant causal mechanisms through distribution matching, 2022 "
    "(arXiv:2206.11646)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"penalty": 1.0, "batch_size": 32}
"""DomainBed's defaults."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -1, 1]}


def _compute_moments(features: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (K, d) and sample covariance (K, d, d) of the rows (K, n, d) in a share (K, n) of ones and zeros."""
    count = share.sum(1).clamp(min=2)[:, None]
    mean = (features * share[..., None]).sum(1) / count
    centred = (features - mean[:, None]) * share[..., None]
    return mean, centred.transpose(1, 2) @ centred / (count[..., None] - 1)


def compute_discrepancy(features: Tensor, first: Tensor) -> Tensor:
    """Between the rows of features (K, n, d) where `first` (K, n) holds and the others: (K,)."""
    shares = [part.to(features.dtype) for part in (first, ~first)]
    (mean, covariance), (other_mean, other_covariance) = (_compute_moments(features, share) for share in shares)
    distance = (mean - other_mean).square().mean(1) + (covariance - other_covariance).square().mean((1, 2))
    enough = torch.stack([share.sum(1) for share in shares]).amin(0) > 1
    return torch.where(enough, distance, 0.0)


class Algorithm(PenalisedRisk):
    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        features = network.encode(network.embed(*batch.inputs))
        risks = average_by_environment(compute_task_loss(network.head(features), batch.target), batch)
        share = features.shape[1] // batch.environments
        check_spread("causirl", share)
        cut = (draw_uniform(clock.draw("cut"), (batch.environments,), torch.float64) * share).long()
        positions = torch.arange(share, device=cut.device)
        return risks.mean(1), compute_discrepancy(features, (positions < cut[..., None]).flatten(1))
