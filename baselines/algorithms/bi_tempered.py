"""The bi-tempered logistic loss: a heavy-tailed softmax (t2 > 1) and a bounded logarithm (t1 < 1).

    p_j = exp_t2(a_j - c(a)),  with c(a) such that sum_j p_j = 1
    loss = -log_t1 p_y - (1 - sum_j p_j^(2 - t1)) / (2 - t1)
    log_t x = (x^(1 - t) - 1) / (1 - t),  exp_t x = [1 + (1 - t) x]_+^(1 / (1 - t))

Amid et al., NeurIPS 2019, sections 2 and 3; t1 = t2 = 1 is cross-entropy. What is predicted is the tempered softmax as
well. The paper finds c by a fixed-point iteration, five rounds in the released code. Here it is the root of
Z^(1 - t2) - 1 with Z = sum_j exp_t2(a_j - c), a power mean of functions linear in c: for t2 > 1 it rises and is
concave, so Newton's method from the left does not overshoot, and one step is enough where all a_j are equal. The
derivative is the implicit one, dc / da_j = p_j^t2 / sum_i p_i^t2, so the gradient is exact however c was found.
"""

from typing import Any

import torch
from torch import Tensor

from . import EmpiricalRisk, StepState

KIND = "corrupted-label"
CITATION = (
    "Amid, Warmuth, Anil and Koren, Robust bi-tempered logistic loss based on Bregman divergences, NeurIPS 2019 "
    "(arXiv:1906.03361)"
)
TASKS = ("classification", "sequence")
SETTINGS: dict[str, Any] = {"t1": 0.8, "t2": 1.2}
"""t1: in [0, 1], the smaller the tighter the loss is bounded. t2: at least 1, the larger the heavier the tail."""
SEARCH: dict[str, Any] = {"t1": ["uniform", 0.2, 1.0], "t2": ["uniform", 1.0, 4.0]}
LIMITS = {"t1": "at least 0 and at most 1", "t2": "at least 1"}

ROUNDS = 7
"""Newton steps: enough for float64 with t2 up to 4, a thousand classes, and scores hundreds apart."""


class Algorithm(EmpiricalRisk):
    def errors(self, logits: Tensor, target: Tensor, clock: StepState) -> Tensor:
        logs = tempered_log_softmax(logits, self.hyperparameters.on("t2", logits))
        return bregman_divergence(logs, target, self.hyperparameters.on("t1", logits))

    def logits(self, network: Any, *inputs: Tensor) -> Tensor:
        """The logarithms of the tempered probabilities, (K, n, classes): their softmax are these probabilities."""
        scores = network(*inputs)
        return tempered_log_softmax(scores, self.hyperparameters.on("t2", scores))


def log_exp(x: Tensor, t: Tensor) -> Tensor:
    """log exp_t x for x <= 0 and t >= 1, elementwise."""
    plain = t == 1
    rest = torch.where(plain, -1.0, 1 - t)
    return torch.where(plain, x, torch.log1p(rest * x) / rest)


def log_t_of_exp(logs: Tensor, t: Tensor) -> Tensor:
    """log_t exp(logs), elementwise."""
    plain = t == 1
    rest = torch.where(plain, 1.0, 1 - t)
    return torch.where(plain, logs, torch.expm1(rest * logs) / rest)


def tempered_log_softmax(scores: Tensor, t: Tensor) -> Tensor:
    """Logarithms of the tempered softmax over the last axis, t >= 1."""
    with torch.no_grad():
        c = scores.amax(-1, keepdim=True)
        for _ in range(ROUNDS):
            c = c + _take_newton_step(scores, c, t)
    return log_exp(scores - (c + _take_newton_step(scores, c, t)), t)


def _take_newton_step(scores: Tensor, c: Tensor, t: Tensor) -> Tensor:
    """The Newton step towards the c at which the probabilities sum to 1. At the root, where its own value is 0, its
    derivative by the scores is that of the root."""
    logs = log_exp(scores - c, t)
    total = logs.logsumexp(-1, keepdim=True)
    fall = (t * logs).exp().sum(-1, keepdim=True) / total.exp()
    return log_t_of_exp(total, 2 - t) / fall.detach()


def bregman_divergence(logs: Tensor, target: Tensor, t: Tensor) -> Tensor:
    """The loss of each target for log-probabilities (K, n, .., classes); t as `logs`, its last axis 1."""
    own = logs.gather(-1, target[..., None])
    spread = ((2 - t) * logs).exp().sum(-1, keepdim=True)
    return (-log_t_of_exp(own, t) - (1 - spread) / (2 - t))[..., 0]
