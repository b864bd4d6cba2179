"""Information-bottleneck IRM: IRM with a penalty on the variance of the features.

    mean_e R_e + weight x mean_e |grad_{w = 1} R_e(w x logits)|^2 + bottleneck x mean_e mean_k Var_e z_k

The penalties of `irm.py` and `ib_erm.py`. DomainBed anneals them apart, with the same default; here both have one
switch, before which there is no bottleneck.
"""

from typing import Any

from torch import Tensor

from ..training.losses import average_by_environment, compute_task_loss, group_by_environment
from . import Batch, StepState
from ._penalised import AnnealedPenalty
from .ib_erm import compute_bottleneck
from .irm import check_halves, compute_invariance_penalty

KIND = "domain"
CITATION = (
    "Ahuja, Caballero, Zhang, Gagnon-Audet, Bengio, Mitliagkas and Rish, Invariance Principle Meets Information "
    "Bottleneck for Out-of-Distribution Generalization, NeurIPS 2021 (arXiv:2106.06607)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "bottleneck": 100.0,
    "penalty": 100.0,
    "penalty_before": 1.0,
    "anneal_percent": 10,
    "restart": True,
    "rescale": False,
    "l2": 0.0,
    "halves": True,
    "batch_size": 32,
}
"""DomainBed's (both weights 100 after 500 of 5,001 steps). halves: as in `irm.py`. The others: see `_penalised.py`."""
SEARCH: dict[str, Any] = {
    "bottleneck": ["log10", -1, 5],
    "penalty": ["log10", -1, 5],
    "anneal_percent": ["choice", 0, 2, 10, 40],
}


class Algorithm(AnnealedPenalty):
    def set_up(self) -> None:
        super().set_up()
        check_halves(self.hyperparameters)

    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        features = network.encode(network.embed(*batch.inputs))
        logits = network.head(features)
        risk = average_by_environment(compute_task_loss(logits, batch.target), batch).mean(1)
        if clock.step >= self.switch(clock):
            risk = risk + self.hyperparameters["bottleneck"] * compute_bottleneck(group_by_environment(features, batch))
        return risk, compute_invariance_penalty(logits, batch, self.hyperparameters["halves"])
