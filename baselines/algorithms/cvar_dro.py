"""CVaR-DRO: the mean loss over the worst fraction of the rows of a batch.

    max_q sum_i q_i l_i,   0 <= q_i <= w_i / (alpha sum w),  sum_i q_i = 1

w_i is the weight of row i (1 if rows are not weighted). Levy et al., NeurIPS 2020, equation 4 with the batch in place
of the distribution, as in their released code and in subpopulation benchmarks. Needs no groups.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import compute_task_loss, reduce_to_rows
from . import BaseAlgorithm, Batch, StepState

KIND = "domain"
CITATION = (
    "Levy, Carmon, Duchi and Sidford, Large-scale methods for distributionally robust optimization, NeurIPS 2020 "
    "(arXiv:2010.05893)"
)
TASKS = ("classification", "sequence", "regression")
SETTINGS: dict[str, Any] = {"alpha": 0.1}
"""alpha: the share, in (0, 1]; 1 is the mean of all rows."""
SEARCH: dict[str, Any] = {"alpha": ["log10", -2, 0]}
LIMITS = {"alpha": "above 0 and at most 1"}


class Algorithm(BaseAlgorithm):
    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        errors = reduce_to_rows(compute_task_loss(network(*batch.inputs), batch.target), batch)
        return compute_cvar(errors, batch.weight, self.hyperparameters.on("alpha", errors))


def compute_cvar(errors: Tensor, weight: Tensor | None, alpha: Tensor) -> Tensor:
    """The mean of the worst share `alpha` (K, 1) of errors (K, n) of rows with weights (K, n), (K,)."""
    counts = torch.ones_like(errors) if weight is None else weight.to(errors.dtype)
    ordered, places = errors.sort(dim=1, descending=True, stable=True)
    counts = counts.gather(1, places)
    room = alpha * counts.sum(1, keepdim=True)
    tail_weight = torch.minimum(counts, (room - (counts.cumsum(1) - counts)).clamp(min=0.0))
    return (tail_weight * ordered).sum(1) / room[:, 0]
