"""Risk extrapolation (V-REx): the variance of the environments' risks is penalised.

    mean_e R_e + weight x Var_e R_e

The variance is the population's, over the environments of a batch. Released code: with two environments the authors'
ColoredMNIST code penalises (R_1 - R_2)^2, which is 4 times the variance: its weight times 4 is `penalty` here.
"""

from typing import Any

from torch import Tensor

from . import Batch, StepState
from ._environments import compute_environment_risks
from ._penalised import AnnealedPenalty

KIND = "domain"
CITATION = (
    "Krueger, Caballero, Jacobsen, Zhang, Binas, Zhang, Le Priol and Courville, Out-of-Distribution Generalization via "
    "Risk Extrapolation, ICML 2021 (arXiv:2003.00688)"
)
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "penalty": 10.0,
    "penalty_before": 1.0,
    "anneal_percent": 10,
    "restart": True,
    "rescale": False,
    "l2": 0.0,
    "batch_size": 32,
}
"""DomainBed's (penalty 10 after 500 of 5,001 steps): see `_penalised.py`."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -1, 5], "anneal_percent": ["choice", 0, 2, 10, 40]}


class Algorithm(AnnealedPenalty):
    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        each = compute_environment_risks(network, batch)
        return each.mean(1), each.var(1, correction=0)
