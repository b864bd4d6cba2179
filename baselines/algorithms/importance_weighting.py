"""Importance weighting: training rows are weighted by an estimated density ratio between shifted and training inputs.

    min  mean_i w_i^flattening CE_i,    w(x) = p_T(x) / p_S(x)

A logistic regression separates the N labelled inputs from the M shifted ones, without labels: with its log-odds a(x)
that x is shifted, w(x) = (N / M) exp a(x) (Bickel, Brückner and Scheffer, ICML 2007), and w is scaled to mean 1 over
the training rows. `flattening` between 0 (ERM) and 1 trades bias for variance (Shimodaira 2000, section 5). The
regression reads the network's first representation (numbers, one-hot categories, pixels), standardised, with the
penalty |v|^2 / (2 strength) beside the sum of its losses, the offset free: scikit-learn's C.
"""

from typing import Any

import torch
from torch import Tensor

from ...core.errors import ModelError
from ..training.losses import average_over_batch, cross_entropy
from . import BaseAlgorithm, Batch, Build, StepState
from ._plain import iterate_shared_rows

KIND = "domain"
CITATION = (
    "Shimodaira, Improving predictive inference under covariate shift by weighting the log-likelihood function, "
    "Journal of Statistical Planning and Inference 2000 (doi:10.1016/S0378-3758(00)00115-4)"
)
TOUCHES = ("train", "unlabelled")
SETTINGS: dict[str, Any] = {"flattening": 1.0, "strength": 1.0}
"""flattening: of the weights, 0 .. 1. strength: the larger, the less the regression is penalised."""
SEARCH: dict[str, Any] = {"flattening": ["uniform", 0.0, 1.0], "strength": ["log10", -2, 1]}

MOST = 4096
"""The most inputs of the regression: Newton's steps solve a system with as many unknowns."""


@torch.no_grad()
def fit_log_odds(source: Tensor, target: Tensor, strength: float, rounds: int = 100) -> Tensor:
    """Of each row of `source` (N, d) that it is one of `target` (M, d), (N,), by penalised logistic regression fitted
    with damped Newton steps in float64."""
    x = torch.cat([source, target]).double()
    deviation = x.std(0, correction=0)
    x = (x - x.mean(0)) / torch.where(deviation > 0, deviation, 1.0)
    x = torch.cat([x, torch.ones_like(x[:, :1])], dim=1)
    y = torch.cat([torch.zeros(len(source)), torch.ones(len(target))]).to(x)
    penalty = torch.full_like(x[0], 1 / strength)
    penalty[-1] = 0.0

    def value(v: Tensor) -> Tensor:
        a = x @ v
        return torch.nn.functional.softplus(a).sum() - y @ a + (penalty * v * v).sum() / 2

    v = torch.zeros_like(x[0])
    for _ in range(rounds):
        p = (x @ v).sigmoid()
        gradient = x.T @ (p - y) + penalty * v
        if gradient.abs().max() < 1e-9 * len(x):
            break
        hessian = (x * (p * (1 - p))[:, None]).T @ x + torch.diag(penalty + 1e-9)
        move, share, before = torch.linalg.solve(hessian, gradient), 1.0, value(v)
        while value(v - share * move) > before and share > 1e-6:
            share /= 2
        v = v - share * move
    return (x @ v)[: len(source)]


class Algorithm(BaseAlgorithm):
    additive = True
    row_weight: Tensor

    def set_up(self) -> None:
        self.register_buffer("row_weight", torch.ones(self.about.replicas, len(self.about.data), dtype=torch.float64))

    def assemble(self, build: Build) -> Any:
        network, data = build("weights"), self.about.data
        assert data.unlabelled is not None
        source, target = (self._read(network, inputs) for inputs in (data.inputs, data.unlabelled))
        exact = self.hyperparameters.exact
        odds_by_strength = {strength: fit_log_odds(source, target, strength) for strength in set(exact("strength"))}
        for index, (strength, power) in enumerate(zip(exact("strength"), exact("flattening"), strict=True)):
            odds = power * odds_by_strength[strength]
            self.row_weight[index] = (odds - odds.max()).exp()
            self.row_weight[index] /= self.row_weight[index].mean()
        return network

    @torch.no_grad()
    def _read(self, network: Any, inputs: tuple[Tensor, ...]) -> Tensor:
        """The regression's inputs for rows that all replicas share, (N, d)."""
        pieces = []
        for some in iterate_shared_rows(inputs, self.about.replicas):
            features = network.embed(*some)[0].flatten(1)
            if features.shape[1] > MOST:
                raise ModelError(
                    f"importance_weighting compares rows by at most {MOST:,} inputs, and these have "
                    f"{features.shape[1]:,}: use features of an encoder (--encoder)"
                )
            pieces.append(features)
        return torch.cat(pieces)

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        errors = cross_entropy(network(*batch.inputs), batch.target)
        weight = self.row_weight.gather(1, batch.rows.to(self.row_weight.device)).to(errors)
        return average_over_batch(weight * errors, batch)
