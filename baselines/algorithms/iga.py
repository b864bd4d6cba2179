"""Inter-environmental gradient alignment: the variance of the environments' gradients is penalised.

    mean_e R_e + weight x sum_e |grad R_e - mean_e grad R_e|^2

Gradients are by all parameters. The paper's penalty is the trace of their variance, a mean over environments; the sum
is DomainBed's, which the default weight assumes. DomainBed treats the mean gradient as a constant, which changes
nothing: deviations sum to zero, and so does the gradient through it.
"""

from typing import Any

import torch
from torch import Tensor

from . import Batch, StepState
from ._environments import compute_risks_and_gradients
from ._penalised import PenalisedRisk

KIND = "domain"
CITATION = (
    "Koyama and Yamaguchi, Out-of-Distribution Generalization with Maximal Invariant Predictor, 2020 (arXiv:2008.01883)"
)
TASKS = ("classification", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"penalty": 1000.0, "batch_size": 32}
"""DomainBed's defaults."""
SEARCH: dict[str, Any] = {"penalty": ["log10", 1, 5]}


class Algorithm(PenalisedRisk):
    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        risks, gradients = compute_risks_and_gradients(network, batch, list(network.parameters()), create_graph=True)
        squares = [(gradient - gradient.mean(1, keepdim=True)).flatten(1).square().sum(1) for gradient in gradients]
        return risks.mean(1), torch.stack(squares).sum(0)
