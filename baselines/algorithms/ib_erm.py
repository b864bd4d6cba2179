"""Information-bottleneck ERM: ERM with a penalty on the variance of the features.

    mean_e R_e + weight x mean_e mean_k Var_e z_k

The features' variance over the rows of an environment bounds their entropy from above. It is the sample's (n - 1),
as in DomainBed.
"""

from typing import Any

from torch import Tensor

from ..training.losses import average_by_environment, average_per_replica, compute_task_loss, group_by_environment
from . import Batch, StepState
from ._penalised import AnnealedPenalty, check_spread

KIND = "domain"
CITATION = (
    "Ahuja, Caballero, Zhang, Gagnon-Audet, Bengio, Mitliagkas and Rish, Invariance Principle Meets Information "
    "Bottleneck for Out-of-Distribution Generalization, NeurIPS 2021 (arXiv:2106.06607)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "penalty": 100.0,
    "penalty_before": 0.0,
    "anneal_percent": 10,
    "restart": True,
    "rescale": False,
    "l2": 0.0,
    "batch_size": 32,
}
"""DomainBed's (penalty 100 after 500 of 5,001 steps): see `_penalised.py`."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -1, 5], "anneal_percent": ["choice", 0, 2, 10, 40]}


def compute_bottleneck(features: Tensor) -> Tensor:
    """The mean variance of features over the rows of an environment: (K, E, n, d) to (K,)."""
    check_spread("an information bottleneck", features.shape[2])
    return average_per_replica(features.var(2))


class Algorithm(AnnealedPenalty):
    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        features = network.encode(network.embed(*batch.inputs))
        risks = average_by_environment(compute_task_loss(network.head(features), batch.target), batch)
        return risks.mean(1), compute_bottleneck(group_by_environment(features, batch))
