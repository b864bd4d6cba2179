"""Maximum mean discrepancy: the environments' feature distributions are matched under a sum of Gaussian kernels.

    mean_e R_e + weight x mean_{i < j} MMD^2(features_i, features_j),  k(x, y) = sum_g exp(-g |x - y|^2)

Li et al. align the codes of an adversarial autoencoder; this is the form of Gulrajani and Lopez-Paz (ICLR 2021,
arXiv:2007.01434), which aligns a classifier's features alone. The estimate is the biased one (Gretton et al., JMLR
2012), never negative.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import average_by_environment, compute_task_loss, group_by_environment
from . import Batch, StepState
from ._penalised import PenalisedRisk

KIND = "domain"
CITATION = "Li, Pan, Wang and Kot, Domain Generalization with Adversarial Feature Learning, CVPR 2018"
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"penalty": 1.0, "batch_size": 32}
"""DomainBed's defaults."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -1, 1]}

GAMMAS = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
"""The kernels' inverse widths, DomainBed's."""


def compute_mmd(features: Tensor) -> Tensor:
    """The mean over pairs of environments of MMD^2 of their features, (K, E, n, d): (K,)."""
    environments = features.shape[1]
    flat = features.flatten(1, 2)
    squares = flat.square().sum(-1)
    products = torch.bmm(flat, flat.transpose(1, 2))
    distances = (squares[:, :, None] + squares[:, None] - 2 * products).clamp(min=0)
    kernels = torch.stack([(-gamma * distances).exp() for gamma in GAMMAS]).sum(0)
    rows = features.shape[2]
    means = kernels.view(len(flat), environments, rows, environments, rows).mean((2, 4))
    own: Tensor = means.diagonal(dim1=1, dim2=2)
    # Over all pairs: sum_{i < j} k_ii + k_jj - 2 k_ij, of which each k_ii is in E - 1.
    total = environments * own.sum(1) - means.sum((1, 2))
    return total / (environments * (environments - 1) / 2)


class Algorithm(PenalisedRisk):
    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        features = network.encode(network.embed(*batch.inputs))
        risks = average_by_environment(compute_task_loss(network.head(features), batch.target), batch)
        return risks.mean(1), compute_mmd(group_by_environment(features, batch))
