"""Group distributionally robust optimisation: the worst group's risk is minimised with online group weights.

    q_g <- q_g exp(step_size x (R_g + C / sqrt(n_g))),  q <- q / sum q,  minimise sum_g q_g R_g     (algorithm 1)

C is the adjustment for the sizes n_g of the groups (section 3.3); groups are the benchmark's environments. The weights
are stored as logarithms, so that the exponential does not overflow, as the released code's can.
"""

from typing import Any

import torch
from torch import Tensor

from . import BaseAlgorithm, Batch, StepState
from ._environments import compute_environment_risks

KIND = "domain"
CITATION = (
    "Sagawa, Koh, Hashimoto and Liang, Distributionally Robust Neural Networks for Group Shifts, ICLR 2020 "
    "(arXiv:1911.08731)"
)
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"step_size": 0.01, "adjustment": 0.0, "batch_size": 32}
"""step_size: of the weights' exponentiated ascent (the paper's and DomainBed's default). adjustment: C, which the paper
searches in 0 .. 5."""
SEARCH: dict[str, Any] = {"step_size": ["log10", -3, -1]}


class Algorithm(BaseAlgorithm):
    by_environment = True
    log_weights: Tensor
    reach: Tensor
    _next: Tensor | None = None

    def set_up(self) -> None:
        data, shape = self.about.data, (self.about.replicas, self.about.environments)
        assert data.group is not None
        sizes = data.weight.new_zeros(len(data.weight), self.about.environments).index_add_(1, data.group, data.weight)
        self.register_buffer("reach", sizes.rsqrt().expand(shape).contiguous())
        self.register_buffer("log_weights", torch.zeros(shape, device=data.weight.device).log_softmax(1))

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        each = compute_environment_risks(network, batch)
        adjusted = each.detach() + self.hyperparameters["adjustment"][:, None] * self.reach
        # A sharpness-aware step computes the loss twice; the weights move once, after it.
        self._next = (self.log_weights + self.hyperparameters["step_size"][:, None] * adjusted).log_softmax(1)
        return (self._next.exp() * each).sum(1)

    def after(self, network: Any, clock: StepState) -> None:
        assert self._next is not None
        self.log_weights, self._next = self._next, None
