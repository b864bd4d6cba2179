"""Empirical quantile risk minimisation: a high quantile of the environments' risks is minimised.

    minimise the quantile F^-1(alpha) of the environments' risks, F(t) = mean_e Phi((t - R_e) / h)   (algorithm 1)

F is a Gaussian kernel estimate with bandwidth h = 1.06 sd E^(-1/5). Training begins with plain risk minimisation; then
the optimiser is another one with a rate of its own.

Released code: the quantile is found by bisection between two bounds, through which autograd runs, so that risks between
the least and the greatest count through the bandwidth alone. Here the derivative is the quantile's own, by the implicit
function theorem: each environment counts in proportion to its density there.
"""

from typing import Any

import torch
from torch import Tensor, nn

from . import BaseAlgorithm, Batch, Batches, MakeOptimiserStep, OptimiserSteps, StepState
from ._environments import compute_environment_risks

KIND = "domain"
CITATION = (
    "Eastwood, Robey, Singh, von Kuegelgen, Hassani, Pappas and Schoelkopf, Probable Domain Generalization via "
    "Quantile Risk Minimization, NeurIPS 2022 (arXiv:2207.09944)"
)
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {"quantile": 0.75, "burn_in_percent": 50, "quantile_lr": 1e-6, "batch_size": 32}
"""DomainBed's. quantile: alpha, above 0 and below 1. burn_in_percent: of all steps, in which the mean risk is minimised
at the rate lr; the quantile is minimised at quantile_lr, whose default and range are for DomainBed's lr of 5e-5: a
recipe with another lr scales it."""
SEARCH: dict[str, Any] = {
    "quantile": ["uniform", 0.5, 0.99],
    "burn_in_percent": ["choice", 10, 25, 50],
    "quantile_lr": ["log10", -7, -5],
}
LIMITS = {"quantile": "above 0 and below 1"}

HALVINGS = 60
"""Bisections of the interval that contains the quantile: as many as float64 can resolve."""


def kernel_quantile(each: Tensor, alpha: Tensor) -> Tensor:
    """The alpha-quantile (K,) of a Gaussian kernel estimate from values (K, E), differentiable in them."""
    values, level = each.double(), alpha.double()[:, None]
    spread = values.var(1, keepdim=True).clamp(min=1e-16).sqrt()  # equal values have no bandwidth
    h = 1.06 * spread * values.shape[1] ** -0.2
    with torch.no_grad():
        reach = h * torch.special.ndtri(level)
        low, high = values.amin(1, keepdim=True) + reach, values.amax(1, keepdim=True) + reach
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            below = torch.special.ndtr((middle - values) / h).mean(1, keepdim=True) < level
            low, high = torch.where(below, middle, low), torch.where(below, high, middle)
        scaled = ((low + high) / 2 - values) / h
        density = (-0.5 * scaled.square()).softmax(1)
    # Each term is the quantile itself, R_e + z_e h, and with z_e held the sum's derivative is the implicit function's.
    quantile: Tensor = (density * (values + scaled * h)).sum(1)
    return quantile.to(each.dtype)


class Algorithm(BaseAlgorithm):
    by_environment = True

    def burns_in(self, clock: StepState) -> bool:
        percent: int = self.hyperparameters["burn_in_percent"]
        return clock.step < round(percent * clock.steps / 100)

    def optimiser_steps(self, network: nn.Module, optimiser_step: MakeOptimiserStep) -> OptimiserSteps:
        parameters = list(network.parameters())
        return {"main": optimiser_step(parameters, "lr"), "quantile": optimiser_step(parameters, "quantile_lr")}

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        each = compute_environment_risks(network, batch)
        return each.mean(1) if self.burns_in(clock) else kernel_quantile(each, self.hyperparameters["quantile"])

    def update(self, network: Any, batches: Batches, clock: StepState, optimiser_steps: OptimiserSteps) -> Tensor:
        chosen = optimiser_steps["main" if self.burns_in(clock) else "quantile"]
        return super().update(network, batches, clock, {"main": chosen})
