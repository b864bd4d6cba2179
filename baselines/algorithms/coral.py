"""Correlation alignment (CORAL): the means and covariances of the environments' features are aligned.

    mean_e R_e + weight x mean_{i < j} [ |mu_i - mu_j|^2 / d + |C_i - C_j|^2 / d^2 ]

Sun and Saenko align covariances of a source and a target; this is the form for many environments of Gulrajani and
Lopez-Paz (ICLR 2021, arXiv:2007.01434), who align means too. The mean over pairs of a squared difference is twice the
sample variance over environments, so no pair is formed.
"""

from typing import Any

from torch import Tensor

from ..training.losses import average_by_environment, average_per_replica, compute_task_loss, group_by_environment
from . import Batch, StepState
from ._penalised import PenalisedRisk, check_spread

KIND = "domain"
CITATION = (
    "Sun and Saenko, Deep CORAL: Correlation Alignment for Deep Domain Adaptation, ECCV Workshops 2016 "
    "(arXiv:1607.01719)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"penalty": 1.0, "batch_size": 32}
"""DomainBed's defaults."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -1, 1]}


def coral_loss(features: Tensor) -> Tensor:
    """Of the features of environments, (K, E, n, d): (K,)."""
    check_spread("coral", features.shape[2])
    means = features.mean(2)
    centred = features - means[:, :, None]
    covariances = centred.transpose(2, 3) @ centred / (features.shape[2] - 1)
    return 2 * (average_per_replica(means.var(1)) + average_per_replica(covariances.var(1)))


class Algorithm(PenalisedRisk):
    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        features = network.encode(network.embed(*batch.inputs))
        risks = average_by_environment(compute_task_loss(network.head(features), batch.target), batch)
        return risks.mean(1), coral_loss(group_by_environment(features, batch))
