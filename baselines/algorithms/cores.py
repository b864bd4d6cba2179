"""CORES: a confidence regulariser, and rows with a larger loss than an average label are left out.

    mean over {i : CE_i <= 1 / C sum_c l_ic} of  CE_i - b sum_c prior_c l_ic,   l_ic = -log(p_ic + 1e-8)

Cheng, Zhu, Li, Gong, Sun and Liu, ICLR 2021, equations 4 and 7: prior_c is how frequent label c is among the training
rows; the released code counts it anew each epoch, among those not left out. b is 0 at first, then rises in a straight
line to `confidence`; before `sieve_percent` of the steps all rows count. Shares of the steps are those of the released
code's 100 epochs, whose first phase this is: rows left out are not learned from as unlabelled ones afterwards. There
rates are divided by 1 + b; here they follow the recipe.
"""

from typing import Any

import torch
from torch import Tensor

from ..training.losses import cross_entropy
from . import BaseAlgorithm, Batch, StepState
from ._rows import compute_log_frequencies, compute_selected_mean

KIND = "corrupted-label"
CITATION = (
    "Cheng, Zhu, Li, Gong, Sun and Liu, Learning with instance-dependent label noise: a sample sieve approach, "
    "ICLR 2021 (arXiv:2010.02347)"
)
SETTINGS: dict[str, Any] = {"confidence": 2.0, "wait_percent": 10, "rise_percent": 30, "sieve_percent": 31}
"""confidence: the largest b. wait_percent: of the steps, before b rises. rise_percent: in which it does. sieve_percent:
before rows are left out."""
SEARCH: dict[str, Any] = {"confidence": ["uniform", 0.5, 4.0], "sieve_percent": ["choice", 20, 31, 50]}


class Algorithm(BaseAlgorithm):
    prior: Tensor

    def set_up(self) -> None:
        self.register_buffer("prior", compute_log_frequencies(self.about).exp())

    def loss(self, network: Any, batch: Batch, clock: StepState) -> Tensor:
        logits = network(*batch.inputs)
        errors = cross_entropy(logits, batch.target)
        every = -(logits.softmax(-1) + 1e-8).log()
        expected = (every * self.prior[:, None].to(every.dtype)).sum(-1)
        weight = self.hyperparameters.on("confidence", errors) * self.risen(clock)
        if 100 * clock.step < self.hyperparameters["sieve_percent"] * clock.steps:
            mask = torch.ones_like(errors)
        else:
            mask = (errors.detach() <= every.detach().mean(-1)).to(errors.dtype)
        return compute_selected_mean(errors - weight * expected, mask, batch)

    def risen(self, clock: StepState) -> float:
        """b as a share of its largest."""
        done: float = 100 * clock.step / clock.steps - self.hyperparameters["wait_percent"]
        return min(1.0, max(0.0, done) / float(max(1, self.hyperparameters["rise_percent"])))
