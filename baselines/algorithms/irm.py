"""Invariant risk minimisation: features on which one classifier is optimal in every environment (IRMv1).

    mean_e R_e + weight x mean_e |grad_{w = 1} R_e(w x logits)|^2                        (section 3.1, IRMv1)

The gradient by the scalar w is the mean over rows of sum_c p_c z_c - z_y, and of 2 z (z - y) where y is a number: no
second differentiation is needed. Numbers are in the units of training (`encoding/targets.py`). With `halves` the
square is the product of two independent estimates, from even and odd rows, which is unbiased (appendix D) though it may
be negative; without, it is the square of one, as in the authors' ColoredMNIST code for full batches.

Released code: DomainBed weights the penalty 1 before the switch and forgets Adam's moments there, as here by default;
the authors' code does not forget them, and divides the loss by the weight (`rescale`). Scores published for
ColoredMNIST were selected on the test environment.
"""

from typing import Any

from torch import Tensor

from ...core.errors import ModelError
from ..replicas.hyperparameters import Hyperparameters
from ..training.losses import (
    average_by_environment,
    compute_task_loss,
    group_by_environment,
    is_numeric_target,
    reduce_to_rows,
)
from . import Batch, StepState
from ._penalised import AnnealedPenalty

KIND = "domain"
CITATION = "Arjovsky, Bottou, Gulrajani and Lopez-Paz, Invariant Risk Minimization, 2019 (arXiv:1907.02893)"
TASKS = ("classification", "sequence", "regression")
TOUCHES = ("train", "groups")
SETTINGS: dict[str, Any] = {
    "penalty": 100.0,
    "penalty_before": 1.0,
    "anneal_percent": 10,
    "restart": True,
    "rescale": False,
    "l2": 0.0,
    "halves": True,
    "batch_size": 32,
}
"""DomainBed's (penalty 100 after 500 of 5,001 steps). halves: estimate the squared gradient from two halves of a batch.
The others: see `_penalised.py`."""
SEARCH: dict[str, Any] = {"penalty": ["log10", -1, 5], "anneal_percent": ["choice", 0, 2, 10, 40]}


def compute_slopes(logits: Tensor, target: Tensor) -> Tensor:
    """The derivative by w, at 1, of each target's loss under the outputs w z; target's shape."""
    if is_numeric_target(target, logits):
        number = logits[..., 0]
        return 2 * number * (number - target)
    return (logits.softmax(-1) * logits).sum(-1) - logits.gather(-1, target[..., None])[..., 0]


def compute_invariance_penalty(logits: Tensor, batch: Batch, halves: bool) -> Tensor:
    """The mean over environments of the squared derivative, (K,)."""
    each = group_by_environment(reduce_to_rows(compute_slopes(logits, batch.target), batch), batch)
    squares = each[..., ::2].mean(-1) * each[..., 1::2].mean(-1) if halves else each.mean(-1).square()
    return squares.mean(1)


def check_halves(hyperparameters: Hyperparameters) -> None:
    """`ModelError` if batches cannot be halved."""
    if hyperparameters["halves"] and hyperparameters["batch_size"] == 1:
        raise ModelError("setting batch_size = 1: a batch of one row has no halves: use 2 or more, or halves = false")


class Algorithm(AnnealedPenalty):
    def set_up(self) -> None:
        super().set_up()
        check_halves(self.hyperparameters)

    def terms(self, network: Any, batch: Batch, clock: StepState) -> tuple[Tensor, Tensor]:
        logits = network(*batch.inputs)
        risks = average_by_environment(reduce_to_rows(compute_task_loss(logits, batch.target), batch), batch)
        return risks.mean(1), compute_invariance_penalty(logits, batch, self.hyperparameters["halves"])
