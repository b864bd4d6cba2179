"""Environment inference for invariant learning: IRM on two environments inferred from the errors of an ERM network.

The first part of training is plain ERM. Then each training row i gets a share q_i of a first environment, and 1 - q_i
of a second, that violate the invariance of IRM as much as possible (Creager et al., section 3):

    max over q  1/2 [ (mean_i q_i g_i)^2 + (mean_i (1 - q_i) g_i)^2 ],    g_i = d CE(w z_i, y_i) / d w at w = 1

by `assignment_steps` of Adam on the logits of q, from normal ones. Rows with q_i > 1/2 are the one environment, the
others the other, and a fresh network is trained on both by IRM, with the penalty of whole environments, as in the
authors' ColoredMNIST code (`irm` with `halves` false, and its annealing). A batch is drawn over all rows, so that its
environments are as large as they come; one without rows counts nothing. With full batches this is the released code,
for any number of classes; its objective is written out, with its gradient, in place of autograd's.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ..replicas.rng import derive_stream, draw_normal, make_keys
from ..training.losses import average_over_batch, cross_entropy
from . import Batch, Data, StepState
from ._penalised import AnnealedPenalty
from ._plain import TwoStages
from .irm import compute_slopes

KIND = "domain"
CITATION = "Creager, Jacobsen and Zemel, Environment inference for invariant learning, ICML 2021 (arXiv:2010.07249)"
SETTINGS: dict[str, Any] = {
    "first_percent": 50,
    "assignment_steps": 10000,
    "assignment_rate": 1e-3,
    "penalty": 100.0,
    "penalty_before": 1.0,
    "anneal_percent": 10,
    "restart": True,
    "rescale": False,
    "l2": 0.0,
}
"""first_percent: of the steps, in which the plain network is trained (half in the released code). assignment_steps and
assignment_rate: of Adam on the shares (the released code's). The others: of IRM (`irm`, `_penalised.py`)."""
SEARCH: dict[str, Any] = {
    "penalty": ["log10", -1, 5],
    "anneal_percent": ["choice", 0, 2, 10, 40],
    "first_percent": ["choice", 10, 25, 50],
}
LIMITS = {"assignment_steps": "at least 1"}


@torch.no_grad()
def optimise_assignment(slope: Tensor, start: Tensor, steps: int, rate: Tensor) -> Tensor:
    """The logits of q (K, N) after `steps` of Adam from `start` (K, N). slope: g, (K, N). rate: (K,)."""
    logits = start.clone()
    first, second = torch.zeros_like(start), torch.zeros_like(start)
    wide = rate[:, None]
    for step in range(1, steps + 1):
        share = logits.sigmoid()
        inside_mean, outside_mean = (share * slope).mean(1, keepdim=True), ((1 - share) * slope).mean(1, keepdim=True)
        gradient = (outside_mean - inside_mean) * slope * share * (1 - share) / slope.shape[1]
        first.lerp_(gradient, 0.1)
        second.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
        size = (second / (1 - 0.999**step)).sqrt_().add_(1e-8)
        logits -= wide / (1 - 0.9**step) * first / size
    return logits


class Algorithm(TwoStages, AnnealedPenalty):
    by_environment = False
    second: Tensor

    def set_up(self) -> None:
        super().set_up()
        self.register_buffer("second", torch.zeros(self.about.replicas, len(self.about.data), dtype=torch.bool))

    def next_stage(self, stage: int, network: Any, data: Data, answer: Callable[..., Tensor]) -> tuple[Data, bool]:
        logits = answer(*data.inputs)
        slope = compute_slopes(logits, data.target.expand(len(logits), -1))
        start = draw_normal(
            derive_stream(make_keys(self.about.names, slope.device), "assignment"), slope.shape[1:], slope.dtype
        )
        rate = self.hyperparameters["assignment_rate"].to(slope)
        assignment = optimise_assignment(slope, start, self.hyperparameters["assignment_steps"], rate)
        self.second.copy_(assignment <= 0)
        return data, True

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        if clock.stage == 1:
            return super().loss(network, batch, clock)
        total = average_over_batch(cross_entropy(network(*batch.inputs), batch.target), batch)
        if self.decays:
            squares = [parameter.flatten(1).square().sum(1) for parameter in network.parameters()]
            total = total + self.hyperparameters["l2"] * torch.stack(squares).sum(0)
        return total

    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        logits = network(*batch.inputs)
        second = self.second.gather(1, batch.rows.to(self.second.device))
        risks, penalties = [], []
        errors, slope = cross_entropy(logits, batch.target), compute_slopes(logits, batch.target)
        for own in (~second, second):
            weight = own.to(errors) if batch.weight is None else own.to(errors) * batch.weight
            share = weight / weight.sum(1, keepdim=True).clamp(min=1e-12)
            risks.append((share * errors).sum(1))
            penalties.append((share * slope).sum(1).square())
        return torch.stack(risks).mean(0), torch.stack(penalties).mean(0)
